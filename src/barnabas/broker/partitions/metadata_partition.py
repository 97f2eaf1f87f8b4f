"""The metadata partition on this node's disk: opened or created for `runtime.metadata_log`.

In: the node's settings, the id of its metadata directory. Out: a loaded `MetadataLog`, and the first records
of a formatted cluster. Records after the newest snapshot are always checked, however the log was closed.
Does not know: elections, decisions.
"""

from __future__ import annotations

from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.versions import LATEST_LEVEL, reason_unsupported
from barnabas.protocol import KafkaError, Message
from barnabas.protocol.uuid import to_text
from barnabas.quorum import snapshot_files
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.quorum.metadata_snapshots import SnapshotPolicy
from barnabas.raft.snapshot_ids import BOOTSTRAP_SNAPSHOT
from barnabas.raft.voters import Membership, Voter, VoterEndpoint, VoterSet
from barnabas.runtime.clock import Clock
from barnabas.runtime.disk import Disk
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.listeners import EndPoint
from barnabas.storage.files import partition_metadata
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import METADATA_TOPIC, PARTITION_METADATA
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

METADATA_TOPIC_ID = (1).to_bytes(16, "big")
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


def open_metadata_log(
    settings: BrokerSettings,
    directory_id: bytes,
    context: LogContext,
    clock: Clock,
    listeners: tuple[EndPoint, ...] | None = None,
) -> MetadataLog:
    """Loads the node's metadata; StorageError in one line when it is damaged, or not for this node.

    `listeners` are the controller's own, if ports were chosen late.
    """
    directory = f"{settings.metadata_log_dir}/{METADATA_TOPIC}-0"
    now_ms = clock.now_ms()
    log_settings = LogSettings(
        segment_bytes=settings["metadata.log.segment.bytes"],
        segment_ms=settings["metadata.log.segment.ms"],
        delete=False,  # only snapshots replace records
    )
    if context.disk.exists(directory):
        # Records before the newest snapshot are never read again.
        checked_to = max(snapshot_files.list_snapshots(context.disk, directory), default=BOOTSTRAP_SNAPSHOT)
        log = Log.open(
            directory, log_settings, recovery_point=checked_to.end_offset, now_ms=now_ms, context=context
        )
        if not context.disk.exists(f"{directory}/{PARTITION_METADATA}"):
            # Formatting a dynamic quorum creates the folder with its voters only.
            partition_metadata.store(context.disk, directory, METADATA_TOPIC_ID, sync=False)
    else:
        log = Log.create(directory, log_settings, topic_id=METADATA_TOPIC_ID, now_ms=now_ms, context=context)
    local = local_voter(settings, directory_id, listeners or settings.advertised_controller_listeners)
    policy = SnapshotPolicy(
        bytes_between=settings["metadata.log.max.record.bytes.between.snapshots"],
        interval_ms=settings["metadata.log.max.snapshot.interval.ms"],
        retention_bytes=settings["metadata.max.retention.bytes"],
        retention_ms=settings["metadata.max.retention.ms"],
    )
    try:
        metadata_log = MetadataLog(log, context.disk, clock, local, static_membership(settings), policy)
    except (KafkaError, ValueError) as error:
        raise StorageError(f"the metadata in {directory} cannot be read: {error}") from error
    reason = None
    if settings.is_controller:
        reason = _reason_not_ours(metadata_log, local, has_others=bool(settings.bootstrap_servers))
    if reason is not None:
        raise StorageError(f"{directory}: {reason}")
    return metadata_log


def _reason_not_ours(metadata_log: MetadataLog, local: Voter, has_others: bool) -> str | None:
    """The reason why this node cannot be a controller of this metadata; None if it can."""
    unsupported = reason_unsupported(metadata_log.image.features.finalized)
    if unsupported is not None:
        return unsupported
    voters = metadata_log.membership.voters
    if voters.ids == (local.id,) and not voters.is_sole(local.id, local.directory_id):
        theirs, ours = to_text(voters.voters[local.id].directory_id), to_text(local.directory_id)
        return f"voter {local.id} has the directory {theirs}, not {ours}"
    if not voters.ids and not has_others:
        return "its quorum has no voters; set controller.quorum.voters, or format with --standalone"
    return None


def local_voter(settings: BrokerSettings, directory_id: bytes, listeners: tuple[EndPoint, ...]) -> Voter:
    endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in listeners)
    return Voter(settings.node_id, directory_id, endpoints)


def static_membership(settings: BrokerSettings) -> Membership:
    """The voters of `controller.quorum.voters`; none for a dynamic quorum, whose log names them."""
    name = settings.controller_listener_names[0] if settings.controller_listener_names else ""
    voters = (
        Voter(voter.id, endpoints=(VoterEndpoint(name, voter.address.host, voter.address.port),))
        for voter in settings.voters
    )
    return Membership(0, VoterSet.of(voters))


def load_bootstrap(disk: Disk, metadata_log_dir: str) -> list[Message]:
    """The first records of a cluster, from `bootstrap.checkpoint`; the newest feature levels without one."""
    path = f"{metadata_log_dir}/{BOOTSTRAP_CHECKPOINT}"
    if not disk.exists(path):
        return list(bootstrap_records(LATEST_LEVEL, {}))
    return list(snapshot_files.load(disk, path, Membership()).records)

"""Formatting: prepares empty folders as the log dirs of a node, as Apache Kafka's storage tool does.

In: the node's settings, a cluster id, the first feature levels and users. Out: `meta.properties` and
`bootstrap.checkpoint` in every log dir, and the first voters of a dynamic quorum in the metadata dir; lines
to print. An invalid request, or a dir of another cluster, raises `FormatError`, and nothing is written.
Does not know: command lines, running nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.broker.partitions.metadata_partition import BOOTSTRAP_CHECKPOINT, local_voter
from barnabas.broker.setup.scram_arguments import scram_record
from barnabas.metadata.bootstrap import bootstrap_level, bootstrap_records
from barnabas.metadata.versions import KRAFT_VERSION, METADATA_VERSION, SCRAM, release_name
from barnabas.protocol import Message
from barnabas.quorum import snapshot_files
from barnabas.raft.snapshot_ids import BOOTSTRAP_SNAPSHOT
from barnabas.raft.voters import Membership, Voter, VoterSet
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.settings.broker import BrokerSettings
from barnabas.storage.files import meta_properties
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.meta_properties import MetaProperties
from barnabas.storage.files.names import META_PROPERTIES, METADATA_TOPIC


class FormatError(Exception):
    """Why nothing was formatted; the message is printed."""


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """Options of a formatting; the names are those of the tool's flags."""

    release_version: str | None = None
    features: Mapping[str, int] = field(default_factory=dict)
    add_scram: Sequence[str] = ()
    ignore_formatted: bool = False
    standalone: bool = False
    initial_controllers: Sequence[Voter] | None = None
    no_initial_controllers: bool = False

    @property
    def is_dynamic(self) -> bool:
        return self.standalone or self.initial_controllers is not None


def format_directories(
    settings: BrokerSettings,
    cluster_id: str,
    request: FormatRequest,
    *,
    now_ms: int,
    random_bytes: Callable[[int], bytes],
    disk: Disk = REAL_DISK,
) -> list[str]:
    """Format every log dir that is not formatted yet. Out: one line for each."""
    _check_quorum(settings, request)
    try:
        level = bootstrap_level(request.release_version, request.features)
        records: list[Message] = list(bootstrap_records(level, request.features))
        if request.add_scram and level < SCRAM:
            raise ValueError(f"SCRAM is only supported in {METADATA_VERSION} {release_name(SCRAM)} or later.")
        records += [scram_record(argument, random_bytes) for argument in request.add_scram]
    except ValueError as error:
        raise FormatError(str(error)) from None
    empty = _unformatted(disk, settings, cluster_id, request.ignore_formatted)
    if not empty:
        return ["All of the log directories are already formatted."]
    bootstrap = snapshot_files.encode(records, level, 0, Membership(), 0, now_ms)
    lines = []
    # The metadata dir comes last: if it is formatted, all dirs are.
    for path in sorted(empty, key=lambda path: path == settings.metadata_log_dir):
        is_metadata = path == settings.metadata_log_dir and settings.is_controller
        directory_id = meta_properties.random_directory_id(random_bytes(16))
        own = next(
            (voter for voter in request.initial_controllers or () if voter.id == settings.node_id), None
        )
        if is_metadata and own is not None:
            directory_id = own.directory_id
        kind = _kind(request, is_metadata or path == settings.metadata_log_dir, own is not None)
        lines.append(f"Formatting {kind} {path} with {METADATA_VERSION} {release_name(level)}.")
        try:
            make_folder(disk, path)
            disk.create(f"{path}/{BOOTSTRAP_CHECKPOINT}", bootstrap, sync=True)
            if is_metadata and request.is_dynamic:
                voters = request.initial_controllers or [_standalone_voter(settings, directory_id)]
                _store_voters(disk, path, voters, now_ms)
            properties = MetaProperties(cluster_id, settings.node_id, directory_id)
            meta_properties.store(disk, path, properties)
        except OSError as error:
            raise FormatError(f"Error while formatting {path}: {error.strerror or error}") from error
    return lines


def holds_nothing(disk: Disk, path: str) -> bool:
    """Whether a folder is missing, empty, or holds only files of an interrupted formatting."""
    if not disk.exists(path):
        return True
    if not disk.is_directory(path):
        return False
    metadata = f"{METADATA_TOPIC}-0"
    left = {BOOTSTRAP_CHECKPOINT, f"{META_PROPERTIES}.tmp", metadata}
    found = set(disk.listdir(path))
    if metadata in found and any(".checkpoint" not in name for name in disk.listdir(f"{path}/{metadata}")):
        return False
    return found <= left


def make_folder(disk: Disk, path: str) -> None:
    """Make a folder, and sync its parent, so that the folder survives a power loss."""
    if not disk.exists(path):
        disk.makedirs(path)
        disk.sync_directory(path.rstrip("/").rpartition("/")[0] or "/")


def _check_quorum(settings: BrokerSettings, request: FormatRequest) -> None:
    """Raise FormatError if static and dynamic voters are mixed, or a controller has neither."""
    if settings.voters:
        if request.is_dynamic:
            raise FormatError(
                "You cannot specify controller.quorum.voters and format the node with --initial-controllers "
                "or --standalone. If you want to use dynamic quorum, please remove controller.quorum.voters "
                "and specify controller.quorum.bootstrap.servers instead."
            )
    elif settings.is_controller and not request.is_dynamic and not request.no_initial_controllers:
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the "
            "following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    if request.standalone and not settings.is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    wanted = request.features.get(KRAFT_VERSION)
    is_dynamic = request.is_dynamic or request.no_initial_controllers
    if wanted and not is_dynamic:
        raise FormatError(
            f"Cannot set kraft.version to {wanted} unless controller.quorum.voters is empty and one of the "
            "flags --standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic "
            "controllers support, try using one of --standalone, --initial-controllers, or "
            "--no-initial-controllers and removing controller.quorum.voters."
        )
    if wanted == 0 and is_dynamic:
        raise FormatError(
            "Cannot set kraft.version to 0 if one of the flags --standalone, --initial-controllers, or "
            "--no-initial-controllers is used. Try removing the --feature flag for kraft.version."
        )


def _unformatted(disk: Disk, settings: BrokerSettings, cluster_id: str, ignore_formatted: bool) -> list[str]:
    """The dirs to format. FormatError: a formatted dir is of another cluster or node, or is not allowed."""
    paths = [path.rstrip("/") or "/" for path in settings.log_dirs]
    metadata_dir = settings.metadata_log_dir
    if metadata_dir not in paths:
        paths.append(metadata_dir)
    empty = []
    formatted = []
    for path in paths:
        try:
            found = meta_properties.load(disk, path) if disk.exists(path) else None
        except StorageError as error:
            raise FormatError(str(error)) from None
        if found is None:
            empty.append(path)
            continue
        formatted.append(path)
        _check_owner(found, path, cluster_id, settings.node_id)
    if formatted and not ignore_formatted:
        raise FormatError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore this "
            "directory and format the others."
        )
    return empty


def _check_owner(found: MetaProperties, path: str, cluster_id: str, node_id: int) -> None:
    file = f"{path}/meta.properties"
    if found.cluster_id != cluster_id:
        raise FormatError(
            f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {found.cluster_id}"
        )
    if found.node_id != node_id:
        raise FormatError(f"Invalid node.id in: {file}. Expected {node_id}, but read {found.node_id}")


def _kind(request: FormatRequest, is_metadata: bool, is_voter: bool) -> str:
    if not is_metadata:
        return "data directory"
    if not request.is_dynamic:
        return "metadata directory"
    return (
        "dynamic metadata voter directory" if request.standalone or is_voter else "dynamic metadata directory"
    )


def _standalone_voter(settings: BrokerSettings, directory_id: bytes) -> Voter:
    listeners = settings.advertised_controller_listeners[:1]
    if not listeners:
        raise FormatError("No controller listeners found.")
    return local_voter(settings, directory_id, listeners)


def _store_voters(disk: Disk, path: str, voters: Sequence[Voter], now_ms: int) -> None:
    """Write the first voters of a dynamic quorum: a snapshot that holds only them."""
    directory = f"{path}/{METADATA_TOPIC}-0"
    disk.makedirs(directory, exist_ok=True)
    membership = Membership(1, VoterSet.of(voters))
    data = snapshot_files.encode([], 0, BOOTSTRAP_SNAPSHOT.epoch, membership, now_ms, now_ms)
    snapshot_files.store(disk, directory, BOOTSTRAP_SNAPSHOT, data)

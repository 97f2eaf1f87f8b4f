"""Snapshots of the metadata log as files: `<end offset>-<epoch>.checkpoint` beside the log's segments.

In: an image, the voters. Out: a file that Apache Kafka loads: a control batch with the header, batches of
records, a control batch with the footer. It is written under another name first, so that a snapshot is whole
or absent.
Does not know: when to write one (see `metadata_log`), what the records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.snapshot import image_records
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import KafkaError, Message, ProtocolError
from barnabas.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from barnabas.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from barnabas.quorum.metadata_packing import pack
from barnabas.raft.snapshot_ids import SnapshotId, parse_name
from barnabas.raft.voters import BOOTSTRAP_OFFSET, Membership
from barnabas.records.batch import headers, validate
from barnabas.records.control import build_quorum_batch, read_control
from barnabas.records.record import iter_records
from barnabas.runtime.disk import Disk

RECORDS_PER_BATCH_MAX = 1024
RECORDS_PER_STEP = 16
PART = ".part"


class CorruptSnapshot(ValueError):
    """A snapshot file that is incomplete, damaged, or no snapshot."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a snapshot file."""

    last_timestamp_ms: int
    membership: Membership
    records: Sequence[Message]

    def image(self, snapshot: SnapshotId) -> MetadataImage:
        delta = MetadataDelta(EMPTY_IMAGE)
        delta.replay_all(self.records)
        return delta.apply(Provenance(snapshot.end_offset - 1, snapshot.epoch, self.last_timestamp_ms))


def list_snapshots(disk: Disk, directory: str) -> dict[SnapshotId, int]:
    """The snapshots of a folder with their sizes, oldest first. Removes unfinished ones."""
    found: dict[SnapshotId, int] = {}
    for name, size in disk.sizes(directory).items():
        snapshot = parse_name(name)
        if snapshot is not None:
            found[snapshot] = size
        elif name.endswith(f".checkpoint{PART}"):
            disk.unlink(f"{directory}/{name}")
    return dict(sorted(found.items()))


def encode(
    records: Iterable[Message],
    level: int,
    epoch: int,
    membership: Membership,
    last_timestamp_ms: int,
    now_ms: int,
) -> bytes:
    """Encode a snapshot; `level` is the `metadata.version` that its records are written with."""
    return at_once(encode_in_steps(records, level, epoch, membership, last_timestamp_ms, now_ms))


def encode_in_steps(
    records: Iterable[Message],
    level: int,
    epoch: int,
    membership: Membership,
    last_timestamp_ms: int,
    now_ms: int,
) -> Steps[bytes]:
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms)
    opening: list[Message] = [header, *membership.control_records()]
    parts = [build_quorum_batch(opening, now_ms, base_offset=0, partition_leader_epoch=epoch)]
    offset = len(opening)
    for batch in _batches(records):
        parts.append((yield from pack(batch, level, now_ms, base_offset=offset, epoch=epoch)))
        offset += len(batch)
    footer = SnapshotFooterRecord(version=0)
    parts.append(build_quorum_batch([footer], now_ms, base_offset=offset, partition_leader_epoch=epoch))
    return b"".join(parts)


def _batches(records: Iterable[Message]) -> Iterator[list[Message]]:
    batch: list[Message] = []
    for record in records:
        batch.append(record)
        if len(batch) == RECORDS_PER_BATCH_MAX:
            yield batch
            batch = []
    if batch:
        yield batch


def store(disk: Disk, directory: str, snapshot: SnapshotId, data: bytes) -> None:
    """Write a snapshot durably: first under a temporary name, then rename it."""
    path = f"{directory}/{snapshot.file_name}"
    disk.create(path + PART, data, sync=True)
    disk.replace(path + PART, path)
    disk.sync_directory(directory)


def encode_image(image: MetadataImage, membership: Membership, now_ms: int) -> Steps[bytes]:
    """Encode a snapshot of an image. Images are immutable, so the loop may do other work between the
    steps."""
    at, level = image.provenance, image.features.metadata_level
    data = yield from encode_in_steps(
        image_records(image), level, at.epoch, membership, at.timestamp_ms, now_ms
    )
    return data


def load(disk: Disk, path: str, membership: Membership) -> Snapshot:
    """Read a snapshot file. `membership` applies where the file has no records of the quorum."""
    records: list[Message] = []
    content = at_once(read_in_steps(disk.read(path), path, membership, records.append))
    return Snapshot(content.last_timestamp_ms, content.membership, records)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a snapshot beside its metadata records."""

    last_timestamp_ms: int
    membership: Membership


def read_in_steps(
    data: bytes, name: str, membership: Membership, take: Callable[[Message], None]
) -> Steps[Content]:
    """Decode a snapshot and hand its metadata records to `take`, one by one. `name` is for the error."""
    last_timestamp_ms = -1
    ended = False
    taken = 0
    try:
        for position, header in headers(data):
            validate(data, position)
            if header.is_control:
                for control in read_control(data, position=position):
                    content = control.content
                    if isinstance(content, SnapshotHeaderRecord):
                        last_timestamp_ms = content.last_contained_log_timestamp
                    elif isinstance(content, SnapshotFooterRecord):
                        ended = True
                    elif isinstance(content, Message):
                        membership = membership.replay(content, BOOTSTRAP_OFFSET)
            else:
                for record in iter_records(data, position=position):
                    take(serde.decode(record.value or b""))
                    taken += 1
                    if not taken % RECORDS_PER_STEP:
                        yield
    except (KafkaError, ProtocolError, ValueError) as error:
        raise CorruptSnapshot(f"{name} is damaged: {error}") from error
    if not ended:
        raise CorruptSnapshot(f"{name} is incomplete: its footer is missing")
    return Content(last_timestamp_ms, membership)

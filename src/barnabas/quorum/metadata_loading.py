"""Loads the metadata log at start: the newest snapshot, then the records after it.

In: the folder's snapshots and the log. Out: the image, the batches that may not be committed yet, the voters.
If this node is the only voter, all of the log is committed, since this node will lead. Otherwise the leader's
high watermark decides. A damaged snapshot is skipped for the one before it, if the log still reaches back
that far.
Does not know: elections.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import RegisterBrokerRecord
from barnabas.quorum import snapshot_files
from barnabas.quorum.uncommitted import Uncommitted, read_batch
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.raft.voters import Membership, Voter
from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader, headers
from barnabas.records.control import read_control
from barnabas.records.record import iter_records
from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.runtime.disk import Disk

READ_BYTES = 4 << 20

# The records of a batch with one NoOpRecord. An idle controller writes two a second and skips them at start.
_NO_OP = bytes((20, 0, 0, 0, 1, 8, 1, 20, 0, 0, 0))

logger = logging.getLogger(__name__)


class Slice(Protocol):
    @property
    def next_offset(self) -> int: ...
    def read(self) -> bytes: ...


class Sync(Protocol):
    def run(self) -> None: ...


class QuorumLog(Protocol):
    """The part of `storage.log.Log` that the quorum uses."""

    @property
    def directory(self) -> str: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def log_start_offset(self) -> int: ...
    def size_bytes_from(self, offset: int) -> int: ...
    def delete_records_before(self, offset: int, now_ms: int) -> Callable[[], None]: ...
    def stage(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None: ...
    def prepare_write(self) -> None: ...
    def write_staged(self) -> None: ...
    def sync(self, offset: int | None = None, now_ms: int | None = None) -> None: ...
    def begin_sync(self) -> Sync: ...
    def end_sync(self, work: Any, /) -> None: ...
    def read(self, offset: int, max_bytes: int, upper_offset: int) -> Slice: ...
    def roll(self) -> None: ...
    def truncate_fully_and_start_at(self, offset: int) -> None: ...
    def close(self) -> None: ...
    def truncate_to(self, offset: int) -> bool: ...
    def assign_epoch(self, epoch: int, start_offset: int) -> None: ...
    @property
    def epochs(self) -> LeaderEpochs: ...


@dataclass(slots=True)
class Loaded:
    membership: Membership
    image: MetadataImage = EMPTY_IMAGE
    memberships: list[tuple[int, Membership]] = field(default_factory=list)  # (offset, membership), ascending
    last_epoch: int = 0  # epoch of the last batch
    uncommitted: Uncommitted = field(default_factory=lambda: Uncommitted(TransactionFilter(), {}))
    snapshots: dict[SnapshotId, int] = field(default_factory=dict)  # snapshot -> size in bytes
    bytes_since_snapshot: int = 0

    def note(self, message: Message, offset: int) -> None:
        after = self.membership.replay(message, offset)
        if after is not self.membership:
            self.membership = after
            self.memberships.append((offset, after))


def load(disk: Disk, log: QuorumLog, membership: Membership, local: Voter) -> Loaded:
    """Load the log of one node. `membership` comes from the configuration; the snapshot and the log override
    it."""
    loaded, start = _begin(disk, log, membership)
    if not _is_alone(loaded, local):
        _load_uncommitted(log, loaded, start)
        if _is_alone(loaded, local):
            _commit_all(loaded, log.end_offset)
        return loaded
    _load_committed(log, loaded, start)
    if not _is_alone(loaded, local):  # the log after the snapshot added other voters
        loaded, start = _begin(disk, log, membership)
        _load_uncommitted(log, loaded, start)
    return loaded


def _is_alone(loaded: Loaded, local: Voter) -> bool:
    return loaded.membership.voters.is_sole(local.id, local.directory_id)


def _begin(disk: Disk, log: QuorumLog, membership: Membership) -> tuple[Loaded, int]:
    loaded = Loaded(membership)
    loaded.snapshots = snapshot_files.list_snapshots(disk, log.directory)
    start = _load_snapshot(disk, log, loaded)
    if start > log.end_offset:
        log.truncate_fully_and_start_at(start)
    return loaded, start


def _load_snapshot(disk: Disk, log: QuorumLog, loaded: Loaded) -> int:
    """Load the newest undamaged snapshot and return the offset after it."""
    for snapshot in sorted(loaded.snapshots, reverse=True):
        path = f"{log.directory}/{snapshot.file_name}"
        try:
            found = snapshot_files.load(disk, path, loaded.membership)
        except snapshot_files.CorruptSnapshot as error:
            logger.error("%s; trying the snapshot before it", error)
            del loaded.snapshots[snapshot]
            continue
        offset = snapshot.end_offset - 1
        loaded.membership = found.membership
        loaded.memberships.append((offset, found.membership))
        loaded.last_epoch = snapshot.epoch
        if found.records:
            loaded.image = found.image(snapshot)
        loaded.uncommitted.registered_at.update(dict.fromkeys(loaded.image.cluster.brokers, offset))
        return snapshot.end_offset
    if log.log_start_offset > 0:
        raise snapshot_files.CorruptSnapshot(
            f"{log.directory} begins at offset {log.log_start_offset}, "
            "and no snapshot holds the records before it"
        )
    return 0


def _load_committed(log: QuorumLog, loaded: Loaded, start: int) -> None:
    delta = MetadataDelta(loaded.image)
    uncommitted = loaded.uncommitted
    last: BatchHeader | None = None
    for data, position, header in _batches(log, start):
        last = header
        loaded.bytes_since_snapshot += header.size
        if header.is_control:
            for control in read_control(data, position=position):
                if isinstance(control.content, Message):
                    loaded.note(control.content, control.offset)
            continue
        if header.record_count == 1 and data[position + BATCH_OVERHEAD : position + header.size] == _NO_OP:
            continue
        records = _records(data, position, uncommitted.registered_at)
        delta.replay_all(uncommitted.transactions.pass_on(records))
    if last is not None:
        loaded.last_epoch = last.partition_leader_epoch
        at = Provenance(last.last_offset, last.partition_leader_epoch, last.max_timestamp)
        loaded.image = delta.apply(at)


def _load_uncommitted(log: QuorumLog, loaded: Loaded, start: int) -> None:
    for data, position, header in _batches(log, start):
        batch = read_batch(data, position, header)
        loaded.bytes_since_snapshot += header.size
        loaded.last_epoch = batch.epoch
        for offset, control in batch.controls:
            loaded.note(control, offset)
        loaded.uncommitted.add(batch)


def _commit_all(loaded: Loaded, end_offset: int) -> None:
    found = loaded.uncommitted.commit(loaded.image, end_offset)
    if found is not None:
        _, loaded.image = found


def _batches(log: QuorumLog, start: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
    offset = start
    while offset < log.end_offset:
        data = log.read(offset, READ_BYTES, log.end_offset).read()
        next_offset = offset
        for position, header in headers(data):
            next_offset = header.next_offset
            if header.last_offset >= offset:
                yield data, position, header
        if next_offset == offset:
            raise snapshot_files.CorruptSnapshot(f"{log.directory} cannot be read at offset {offset}")
        offset = next_offset


def _records(data: bytes, position: int, registered_at: dict[int, int]) -> Iterator[Message]:
    for record in iter_records(data, position=position):
        decoded = serde.decode(record.value or b"")
        if type(decoded) is RegisterBrokerRecord:
            registered_at[decoded.broker_id] = record.offset
        yield decoded

"""Prints the small files beside a segment: indexes, producer snapshots, checkpoints.

In: one file. Out: Kafka's lines, and the contradictions between an index and its segment, for a summary at
the end. Does not know: options, the content of records.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.cli.files.data_files import content_of, mapped, size_of
from barnabas.cli.files.segment_dump import optional
from barnabas.cli.frame.parsing import ToolError
from barnabas.protocol import KafkaError
from barnabas.records.batch import BatchHeader, headers, next_size
from barnabas.records.crc32c import Buffer
from barnabas.records.record import iter_records
from barnabas.replication.producer_snapshot import decode as decode_producers
from barnabas.storage.files.checkpoints import CorruptCheckpoint, decode_epochs, decode_offsets
from barnabas.storage.segments.index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
)
from barnabas.storage.segments.transaction_index import VERSION as TRANSACTION_INDEX_VERSION
from barnabas.storage.segments.transaction_index import decode as decode_aborted

NO_OFFSET = -1


@dataclass(slots=True)
class IndexProblems:
    """The contradictions between an index and its segment: three kinds of Kafka, and one of our own."""

    mismatches: list[tuple[int, int]] = field(default_factory=list)
    time_mismatches: list[tuple[int, int]] = field(default_factory=list)
    out_of_order: list[tuple[int, int]] = field(default_factory=list)
    not_found: list[tuple[int, int]] = field(default_factory=list)

    def lines(self, path: Path) -> Iterator[str]:
        if self.mismatches:
            yield f"Mismatches in :{path.absolute()}"
            yield from (f"  Index offset: {one}, log offset: {other}" for one, other in self.mismatches)
        if self.time_mismatches:
            yield f"Found timestamp mismatch in :{path.absolute()}"
            for one, other in self.time_mismatches:
                yield f"  Index timestamp: {one}, log timestamp: {other}"
        if self.out_of_order:
            yield f"Found out of order timestamp in :{path.absolute()}"
            for one, other in self.out_of_order:
                yield f"  Index timestamp: {one}, Previously indexed timestamp: {other}"
        if self.not_found:
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {one}, found log offset: {other}" for one, other in self.not_found)


def base_offset(path: Path) -> int:
    name = path.name.partition(".")[0]
    if not name.isdigit():
        raise ToolError(f"{path}: the name of a segment's file is its first offset, as in {0:020}.log")
    return int(name)


def log_beside(path: Path) -> Path:
    log = path.with_name(f"{path.name.partition('.')[0]}.log")
    if not log.exists():
        raise ToolError(
            f"{path}: an index is checked against its segment, but there is no {log.name} beside it"
        )
    return log


def offset_index(
    path: Path, findings: IndexProblems, *, sanity_only: bool, verify_only: bool
) -> Iterator[str]:
    data = content_of(path)
    index = OffsetIndex(base_offset(path), whole_entries(data, OFFSET_ENTRY_BYTES))
    log = log_beside(path)
    if len(index) == 0:
        yield f"{path} is empty."
        return
    if sanity_only:
        yield sanity(path, lambda: OffsetIndex(base_offset(path), trimmed(data)).check(size_of(log)))
        return
    with mapped(log) as buffer:
        for slot in range(len(index)):
            offset, position = index.entry(slot)
            if offset == index.base_offset and slot > 0:
                return  # the rest is space that a running broker has reserved
            header = batch_at(buffer, position)
            found = header.last_offset if header else NO_OFFSET
            if found != offset:
                findings.mismatches.append((offset, found))
            if not verify_only:
                yield f"offset: {offset} position: {position}"


def time_index(path: Path, findings: IndexProblems, *, sanity_only: bool, verify_only: bool) -> Iterator[str]:
    data = content_of(path)
    index = TimeIndex(base_offset(path), whole_entries(data, TIME_ENTRY_BYTES))
    log = log_beside(path)
    if sanity_only:
        yield sanity(path, TimeIndex(base_offset(path), trimmed(data)).check)
        return
    offsets_path = path.with_suffix(".index")
    content = whole_entries(content_of(offsets_path), OFFSET_ENTRY_BYTES) if offsets_path.exists() else b""
    offsets = OffsetIndex(base_offset(path), trimmed(content))
    previous = -1
    with mapped(log) as buffer:
        for slot in range(len(index)):
            timestamp, offset = index.entry(slot)
            if offset == index.base_offset and slot > 0:
                return
            compare_time(buffer, offsets.position_before(offset), (timestamp, offset), previous, findings)
            if not verify_only:
                yield f"timestamp: {timestamp} offset: {offset}"
            previous = timestamp


def compare_time(
    buffer: Buffer, position: int, entry: tuple[int, int], previous: int, findings: IndexProblems
) -> None:
    """Check that an entry holds the last offset of a batch and the largest timestamp in it."""
    timestamp, offset = entry
    view = memoryview(buffer)[position:]
    try:
        for start, header in headers(view):
            if header.last_offset < offset:
                continue
            if header.last_offset != offset:
                findings.not_found.append((offset, header.last_offset))
                return
            found = max((record.timestamp for record in iter_records(view, position=start)), default=-1)
            if found != timestamp:
                findings.time_mismatches.append((timestamp, found))
            if previous >= timestamp:
                findings.out_of_order.append((timestamp, previous))
            return
        findings.not_found.append((offset, NO_OFFSET))
    except KafkaError:
        findings.not_found.append((offset, NO_OFFSET))
    finally:
        view.release()


def transaction_index(path: Path) -> Iterator[str]:
    try:
        for each in decode_aborted(content_of(path)):
            yield (
                f"version: {TRANSACTION_INDEX_VERSION} producerId: {each.producer_id} "
                f"firstOffset: {each.first_offset} lastOffset: {each.last_offset} "
                f"lastStableOffset: {each.last_stable_offset}"
            )
    except (ValueError, CorruptIndex) as error:
        raise ToolError(f"{path}: {error}") from None


def producer_snapshot(path: Path) -> Iterator[str]:
    try:
        states = decode_producers(content_of(path))
    except ValueError as error:
        raise ToolError(f"{path}: {error}") from None
    for state in states:
        first = optional(state.txn_first_offset if state.txn_first_offset >= 0 else None)
        line = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: {first} "
            f"lastTimestamp: {state.last_timestamp} "
        )
        if state.batches:
            batch = state.batches[0]
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
                f"timestamp: {batch.timestamp}"
            )
        yield line


def text_checkpoint(path: Path) -> Iterator[str]:
    """Lines of a checkpoint of offsets or leader epochs (Kafka's own tool ignores these files)."""
    data = content_of(path)
    try:
        if path.name == "leader-epoch-checkpoint":
            for entry in decode_epochs(data):
                yield f"epoch: {entry.epoch} startOffset: {entry.start_offset}"
        elif data:
            for where, offset in sorted(decode_offsets(data).items()):
                yield f"topic: {where.topic} partition: {where.partition} offset: {offset}"
    except CorruptCheckpoint as error:
        raise ToolError(f"{path}: {error}") from None


def whole_entries(data: bytes, size: int) -> bytes:
    return data[: len(data) - len(data) % size]


def trimmed(data: bytes) -> bytes:
    """The entries without the reserved space that a running broker has at the end of the file."""
    return data if len(data) < 1 << 16 else data.rstrip(b"\0")


def batch_at(buffer: Buffer, position: int) -> BatchHeader | None:
    try:
        return BatchHeader(buffer, position) if next_size(buffer, position) is not None else None
    except (KafkaError, IndexError):
        return None


def sanity(path: Path, check: object) -> str:
    assert callable(check)
    try:
        check()
    except CorruptIndex as error:
        raise ToolError(f"Corrupt index found, index file ({path}): {error}") from None
    return f"{path} passed sanity check."

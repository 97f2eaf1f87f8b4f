"""Logs of all kinds to clean: keys that repeat, tombstones, codecs, idempotent producers, transactions.

A history is a list of steps that hypothesis draws; `write` plays it into a log as a leader would.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from barnabas.metadata.steps import at_once
from barnabas.records.batch import BatchHeader, headers
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch, read_records
from barnabas.storage import Log, LogSettings
from barnabas.storage.compaction.cleanable import CleanerLimits, assess, job_for
from barnabas.storage.compaction.cleaner import Cleaner
from barnabas.storage.compaction.job import CleaningStats
from barnabas.storage.files.names import CLEANED
from barnabas.storage.logs.context import LogContext
from barnabas.storage.segments.segment import Segment

from ..building import NOW_MS, append_marker, stage

DAY_MS = 24 * 3600 * 1000
SETTINGS = LogSettings(
    segment_bytes=4000, index_interval_bytes=200, compact=True, delete=False, delete_retention_ms=DAY_MS
)
LIMITS = CleanerLimits(key_bytes_max=1 << 20, io_buffer_bytes=512, io_bytes_per_second=float("inf"))
ONE_BATCH_A_PASS = CleanerLimits(key_bytes_max=1, io_buffer_bytes=100, io_bytes_per_second=float("inf"))


@dataclass(frozen=True)
class Batch:
    """Records of one producer (None: without id); `values` are (key, value bytes or None for a tombstone)."""

    producer: int | None
    transactional: bool
    codec: Compression
    values: tuple[tuple[int, int | None], ...]
    append_time: bool = False


@dataclass(frozen=True)
class End:
    producer: int
    aborted: bool


@dataclass(frozen=True)
class Roll:
    pass


Step = Batch | End | Roll

_values = st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 40)), min_size=1, max_size=6).map(
    tuple
)
_batches = st.builds(
    Batch,
    producer=st.none() | st.integers(0, 3),
    transactional=st.booleans(),
    codec=st.sampled_from(Compression),
    values=_values,
    append_time=st.booleans(),
)
_steps = st.one_of(
    _batches, _batches, _batches, st.builds(End, st.integers(0, 3), st.booleans()), st.builds(Roll)
)
histories = st.lists(_steps, min_size=1, max_size=25)


def write(log: Log, steps: Iterable[Step]) -> None:
    sequences = {each.producer_id - 1000: each.last_sequence + 1 for each in log.producers}
    for step in steps:
        at = log.end_offset
        if isinstance(step, Roll):
            log.roll()
        elif isinstance(step, End):
            if log.producers.has_ongoing_transaction(1000 + step.producer):
                append_marker(log, 1000 + step.producer, aborted=step.aborted)
        else:
            # Producers 0 and 1 write in transactions or never, 2 and 3 as the step likes, within the rules.
            transactional = step.producer is not None and step.transactional
            if step.producer is not None and log.producers.has_ongoing_transaction(1000 + step.producer):
                transactional = True
            sequence = sequences.get(step.producer, 0) if step.producer is not None else -1
            stage(log, data_batch(at, step, transactional, sequence))
            log.write_staged()
            if step.producer is not None:
                sequences[step.producer] = sequence + len(step.values)


def data_batch(at: int, step: Batch, transactional: bool, sequence: int) -> bytearray:
    records = [
        Record(
            timestamp=NOW_MS + at * 10 + (index * 7) % 5,
            key=b"key-%d" % key,
            value=None if size is None else b"%d/" % (at + index) + b"v" * size,
            headers=(("h", b"x"),) if size == 3 else (),
        )
        for index, (key, size) in enumerate(step.values)
    ]
    return build_batch(
        records,
        base_offset=at,
        compression=step.codec,
        partition_leader_epoch=0,
        producer_id=-1 if step.producer is None else 1000 + step.producer,
        producer_epoch=-1 if step.producer is None else 0,
        base_sequence=sequence,
        transactional=transactional,
        append_time_ms=NOW_MS + at * 10 if step.append_time else None,
    )


# Cleaning, all in one go


def last_stable_offset(log: Log) -> int:
    unstable = log.producers.first_undecided_offset()
    return log.end_offset if unstable is None else unstable


def clean_once(
    log: Log,
    checkpoint: int | None,
    *,
    now_ms: int = NOW_MS,
    limits: CleanerLimits = LIMITS,
    context: LogContext | None = None,
) -> CleaningStats:
    """One pass, as the broker has it done in another process."""
    found = assess(log, checkpoint, last_stable_offset(log), now_ms)
    cleaner = Cleaner(
        at_once(job_for(log, found, limits, now_ms)),
        context or LogContext(log.context.disk),
        sleep=lambda _: None,
    )
    for group in cleaner.run():
        old = [segment for segment in log.segments if segment.base_offset in group.base_offsets]
        new = Segment(log.context, log.directory, old[0].base_offset, group.size, CLEANED)
        assert log.replace_segments(old, [new], now_ms)
    return cleaner.stats


def clean(log: Log, *, now_ms: int = NOW_MS, limits: CleanerLimits = LIMITS, checkpoint: int = 0) -> int:
    """Passes until nothing is dirty; the offset up to which the log is clean."""
    while True:
        found = assess(log, checkpoint, last_stable_offset(log), now_ms)
        if found.first_uncleanable_offset <= found.first_dirty_offset:
            return checkpoint
        stats = clean_once(log, checkpoint, now_ms=now_ms, limits=limits)
        assert stats.end_offset > checkpoint, "a pass without progress"
        checkpoint = stats.end_offset


# Reading


def batches_of(log: Log) -> list[tuple[BatchHeader, bytes]]:
    found: list[tuple[BatchHeader, bytes]] = []
    offset = log.segments[0].base_offset
    while offset < log.end_offset:
        data = log.read_cold(offset, 1 << 20).read()
        if not data:
            break
        for position, header in headers(data):
            found.append((header, data[position : position + header.size]))
        offset = found[-1][0].next_offset
    return found


def all_records(log: Log) -> list[Record]:
    """What a consumer without isolation reads."""
    return [
        record for header, batch in batches_of(log) if not header.is_control for record in read_records(batch)
    ]


def committed_records(log: Log) -> list[Record]:
    """What a consumer with `read_committed` reads, worked out as clients do."""
    end = last_stable_offset(log)
    aborted = sorted(log.aborted_transactions(0, end), key=lambda each: each.first_offset)
    open_aborted: dict[int, int] = {}
    found: list[Record] = []
    for header, batch in batches_of(log):
        if header.base_offset >= end:
            break
        while aborted and aborted[0].first_offset <= header.last_offset:
            transaction = aborted.pop(0)
            open_aborted[transaction.producer_id] = transaction.last_offset
        if header.is_control:
            open_aborted.pop(header.producer_id, None)
        elif not (header.is_transactional and header.producer_id in open_aborted):
            found += read_records(batch)
    return found

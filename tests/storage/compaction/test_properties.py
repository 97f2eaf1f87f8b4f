"""Random logs are cleaned and compared with a model of one line."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings

from barnabas.records.compression import Compression
from barnabas.records.record import Record
from barnabas.storage import Log
from barnabas.storage.compaction.cleanable import CleanerLimits, assess

from ..building import NOW_MS
from .histories import (
    DAY_MS,
    LIMITS,
    ONE_BATCH_A_PASS,
    SETTINGS,
    Batch,
    End,
    Roll,
    Step,
    all_records,
    batches_of,
    clean,
    committed_records,
    histories,
    last_stable_offset,
    write,
)

ABORTED_IN_THE_NEXT_SEGMENT: list[Step] = [
    Batch(0, True, Compression.NONE, ((1, 5),)),
    Roll(),
    Batch(None, False, Compression.NONE, ((1, 5),)),
    End(0, True),
    Roll(),
]

ABORTED: list[Step] = [
    Batch(0, True, Compression.NONE, ((1, 5),)),
    End(0, False),
    Batch(0, True, Compression.NONE, ((1, 5),)),
    End(0, True),
    Roll(),
]
COMMITTED_AFTER: list[Step] = [Batch(0, True, Compression.NONE, ((1, 5),)), End(0, False)]


def in_a_log(steps: list[Step], folder: str) -> Log:
    log = Log.create(f"{folder}/topic-0", SETTINGS, now_ms=NOW_MS)
    write(log, steps)
    return log


def model(committed: list[Record], end: int) -> list[Record]:
    """The last record of every key below `end`; above it everything stays."""
    last = {record.key: record.offset for record in committed if record.offset < end}
    return [record for record in committed if record.offset >= end or last[record.key] == record.offset]


def end_of_cleaning(log: Log) -> int:
    return assess(log, 0, last_stable_offset(log), NOW_MS).first_uncleanable_offset


@pytest.mark.parametrize("limits", [LIMITS, ONE_BATCH_A_PASS], ids=["one pass", "many passes"])
@settings(max_examples=80, deadline=None)
@given(steps=histories)
@example(steps=ABORTED_IN_THE_NEXT_SEGMENT)
def test_the_last_record_of_every_key_is_left(limits: CleanerLimits, steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        log = in_a_log(steps, folder)
        before, end = committed_records(log), end_of_cleaning(log)
        uncommitted = [record for record in all_records(log) if record.offset >= end]

        clean(log, limits=limits)

        expected = model(before, end)
        assert committed_records(log) == expected
        # Aborted records are gone as well, also for those who would read them.
        assert all_records(log) == [each for each in expected if each.offset < end] + uncommitted


@settings(max_examples=60, deadline=None)
@given(steps=histories)
def test_offsets_times_and_producers_are_those_of_the_log_before(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        log = in_a_log(steps, folder)
        end_offset, stable = log.end_offset, last_stable_offset(log)
        producers = {p.producer_id: (p.producer_epoch, p.last_sequence, p.last_offset) for p in log.producers}

        clean(log)
        clean(log, checkpoint=0, now_ms=NOW_MS + 2 * DAY_MS)

        offsets = [header.base_offset for header, _ in batches_of(log)]
        assert offsets == sorted(set(offsets))
        remaining = all_records(log)
        for record in remaining:
            first = next(r for r in remaining if r.timestamp >= record.timestamp)
            found = log.offset_for_timestamp(record.timestamp)
            assert found is not None and (found.offset, found.timestamp) == (first.offset, first.timestamp)
        for snapshot in Path(log.directory).glob("*.snapshot"):
            snapshot.unlink()
        recovered = Log.open(log.directory, SETTINGS, recovery_point=0, clean=False, now_ms=NOW_MS)
        assert recovered.end_offset == end_offset
        assert last_stable_offset(recovered) == stable
        again = {
            p.producer_id: (p.producer_epoch, p.last_sequence, p.last_offset) for p in recovered.producers
        }
        assert {id: state for id, state in producers.items() if state[1] >= 0} == {
            id: state for id, state in again.items() if state[1] >= 0
        }
        assert all_records(recovered) == remaining


@settings(max_examples=60, deadline=None)
@given(steps=histories)
def test_tombstones_leave_when_their_time_has_come_and_not_before(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        log = in_a_log(steps, folder)
        expected = model(committed_records(log), end := end_of_cleaning(log))

        clean(log)
        clean(log, now_ms=NOW_MS + DAY_MS - 1)
        assert committed_records(log) == expected

        clean(log, now_ms=NOW_MS + DAY_MS)
        assert committed_records(log) == [r for r in expected if r.offset >= end or r.value is not None]


@settings(max_examples=60, deadline=None)
@given(steps=histories, more=histories)
@example(steps=ABORTED, more=COMMITTED_AFTER)
def test_a_log_that_grows_is_cleaned_again(steps: list[Step], more: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        log = in_a_log(steps, folder)
        checkpoint = clean(log)
        write(log, more)
        log.roll()
        before = committed_records(log)

        clean(log, checkpoint=checkpoint)

        assert committed_records(log) == model(before, end_of_cleaning(log))

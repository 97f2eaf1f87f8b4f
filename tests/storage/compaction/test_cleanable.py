"""How dirty a log is, and how much of it may be cleaned."""

from dataclasses import replace

import pytest

from barnabas.storage import Log
from barnabas.storage.compaction.cleanable import Cleanable, assess

from ..building import NOW_MS
from .histories import DAY_MS, SETTINGS

from ..building import append, batch_at  # isort: skip

HOUR_MS = 3_600_000


@pytest.fixture
def compacted(directory: str) -> Log:
    """Five closed segments of ten offsets, an hour apart, and the active one."""
    log = Log.create(directory, SETTINGS, now_ms=NOW_MS)
    for index in range(5):
        append(log, batch_at(index * 10, 10, timestamp=NOW_MS + index * HOUR_MS))
        log.roll()
    append(log, batch_at(50, timestamp=NOW_MS + 5 * HOUR_MS))
    return log


def look(log: Log, checkpoint: int | None = None, *, stable: int = 51, now_ms: int = NOW_MS) -> Cleanable:
    return assess(log, checkpoint, stable, now_ms)


def test_everything_but_the_active_segment_is_dirty_at_first(compacted: Log) -> None:
    found = look(compacted)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 50)
    assert (found.clean_bytes, found.dirty_ratio) == (0, 1.0)


def test_fifteen_of_thirty_five_dirty_is_not_enough_by_default(directory: str) -> None:
    log = Log.create(directory, SETTINGS, now_ms=NOW_MS)
    for index in range(7):  # segments of equal size: four of them clean, three dirty
        append(log, batch_at(index * 5 + 100, 5))
        log.roll()
    found = look(log, checkpoint=120, stable=200)
    assert found.dirty_ratio == 15 / 35
    assert not found.is_due(SETTINGS.min_cleanable_dirty_ratio)
    assert found.is_due(0.4)


def test_half_is_not_more_than_half(compacted: Log) -> None:
    assert Cleanable(0, 10, 100, 100, 0, False).is_due(0.5) is False
    assert Cleanable(0, 10, 100, 101, 0, False).is_due(0.5) is True


def test_nothing_is_cleaned_from_the_segment_with_the_last_stable_offset_on(compacted: Log) -> None:
    assert look(compacted, stable=35).first_uncleanable_offset == 30
    assert look(compacted, stable=30).first_uncleanable_offset == 30
    assert look(compacted, stable=29).first_uncleanable_offset == 20


def test_young_segments_are_left_alone(compacted: Log) -> None:
    compacted.configure(replace(SETTINGS, min_compaction_lag_ms=HOUR_MS))
    found = look(compacted, now_ms=NOW_MS + 3 * HOUR_MS + 100)  # the third is an hour old, more or less
    assert found.first_uncleanable_offset == 30


def test_an_old_segment_makes_a_log_due_however_clean_it_is(compacted: Log) -> None:
    compacted.configure(replace(SETTINGS, max_compaction_lag_ms=HOUR_MS, min_cleanable_dirty_ratio=1.0))
    in_time = look(compacted, checkpoint=40, now_ms=NOW_MS + 5 * HOUR_MS)
    late = look(compacted, checkpoint=40, now_ms=NOW_MS + 5 * HOUR_MS + 10)
    assert (in_time.delay_ms, in_time.is_due(1.0)) == (0, False)
    assert (late.delay_ms, late.is_due(1.0)) == (1, True)


def test_nothing_is_due_where_nothing_is_dirty(compacted: Log) -> None:
    compacted.configure(replace(SETTINGS, max_compaction_lag_ms=1))
    found = look(compacted, checkpoint=50, now_ms=NOW_MS + DAY_MS)
    assert found.dirty_bytes == 0
    assert not found.is_due(0.0)


@pytest.mark.parametrize("checkpoint", [10, 60], ids=["before the start", "behind the end"])
def test_a_checkpoint_outside_of_the_log_is_no_good(compacted: Log, checkpoint: int) -> None:
    compacted.advance_log_start(20)
    found = look(compacted, checkpoint)
    assert (found.first_dirty_offset, found.is_reset) == (20, True)


def test_a_segment_that_is_partly_clean_counts_as_both(compacted: Log) -> None:
    found = look(compacted, checkpoint=25)
    sizes = [segment.size for segment in compacted.segments]
    assert found.clean_bytes == sum(sizes[:3])
    assert found.dirty_bytes == sum(sizes[2:5])

"""Batches get about a second of work."""

from __future__ import annotations

from barnabas.streams.spark.pace import FIRST, RECORDS_MIN, Pace


def after(pace: Pace, us_a_record: float, batches: int, fixed_s: float = 0.0) -> int:
    """The limit after full batches whose records take so long."""
    for _ in range(batches):
        pace.batch_ended(pace.limit, pace.limit * us_a_record / 1_000_000 + fixed_s)
    return pace.limit


def test_quick_batches_grow_to_the_maximum() -> None:
    assert after(Pace(1_000_000), 0.5, 10) == 1_000_000


def test_slow_batches_shrink_to_about_a_second() -> None:
    pace = Pace(1_000_000)
    assert 1_000 <= after(pace, 1_000, 12) <= 2_000  # a millisecond a record
    assert after(pace, 1_000_000, 9) == RECORDS_MIN  # never so small that nothing goes on
    assert after(pace, 1, 10) >= 500_000  # and they grow again


def test_small_batches_change_nothing() -> None:
    pace = Pace(1_000_000)
    for _ in range(10):
        pace.batch_ended(10, 0.01)
        pace.batch_ended(10, 30.0)  # a slow broker, not many records
    assert pace.limit == FIRST
    assert Pace(5).limit == 5


def test_a_single_slow_batch_changes_nothing() -> None:
    pace = Pace(1_000_000)
    pace.batch_ended(FIRST, 20.0)  # it compiled its loops
    assert pace.limit == FIRST
    pace.batch_ended(FIRST, 0.5)
    assert pace.limit == 2 * FIRST


def test_a_busy_machine_does_not_lead_to_ever_smaller_batches() -> None:
    """Half a second of each batch does not depend on its records."""
    assert after(Pace(1_000_000), 5, 20, fixed_s=0.5) >= 100_000

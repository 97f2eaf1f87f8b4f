"""The safety window begins so many seconds before the newest time, in the form of the database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from barnabas.pipeline.sources.late_window import STEPS_MAX, Step, following, read_since, window_start

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("newest", "start"),
    [
        ("2026-01-01 00:05:00.75", "2026-01-01 00:00:00"),  # SQLite, MySQL
        ("2026-01-01 00:05:00.75+00", "2026-01-01 00:00:00+00:00"),  # PostgreSQL
        ("2026-01-01T00:05:00Z", "2026-01-01T00:00:00+00:00"),
        ("2026-01-01", "2025-12-31"),
        ("1767225900", "1767225600"),
        ("1767225900000", "1767225600000"),
        ("last tuesday", "last tuesday"),
        ("0001-01-01 00:00:00", "0001-01-01 00:00:00"),
    ],
)
def test_the_window_begins_in_the_form_of_the_newest_time(newest: str, start: str) -> None:
    assert window_start(newest, 300.0) == start
    assert window_start(newest, 0.0) == newest


def test_steps_are_kept_as_long_as_their_rows_may_be_in_the_window() -> None:
    steps: list[Step] = []
    for minute in range(10):
        at = NOW.replace(minute=minute)
        steps = following(steps, f"2026-01-01 00:{minute:02}:00", at, 300.0)
    assert [time[-5:-3] for time, _ in steps] == ["04", "05", "06", "07", "08", "09"]
    assert read_since(steps, "2026-01-01 00:06:30") == NOW.replace(minute=7)
    assert read_since(steps, "2026-01-01 00:10:00") is None


def test_many_steps_are_thinned_out_without_forgetting_the_first() -> None:
    steps: list[Step] = []
    for second in range(299):
        at = NOW.replace(minute=second // 60, second=second % 60)
        steps = following(steps, f"2026-01-01 00:{second // 60:02}:{second % 60:02}", at, 300.0)
        assert len(steps) <= STEPS_MAX
        assert steps[0] == ["2026-01-01 00:00:00", NOW.isoformat()]

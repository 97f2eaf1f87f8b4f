"""Buffers of suppress: bounds by records and by bytes, and what a full one does. Durations as timedeltas."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from barnabas.plans.interpreter.records import Record, TaskError
from barnabas.plans.interpreter.task import Task
from barnabas.plans.nodes import Suppression
from barnabas.plans.stores import MemoryBackend
from barnabas.plans.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    WindowError,
)
from barnabas.streams import StreamsBuilder, until_time_limit, until_window_closes

ENTRY = 8 + 1 + 4  # at least: the time, a key of one byte, the size of a value


class Run:
    """Last values of keys, suppressed; a task for each batch."""

    def __init__(self, rules: Suppression) -> None:
        builder = StreamsBuilder("app")
        rows = builder.stream("in", key=str, value=str).group_by_key().reduce(lambda one, two: two)
        rows.suppress(rules).to_stream().to("out")
        self._subtopology = builder.build().subtopologies[0]
        self._backend = MemoryBackend()
        self._time = 0

    def batch(self, *pairs: tuple[str, str], forgets: bool = False) -> list[str]:
        """The values that came out."""
        task = Task(self._subtopology, self._backend)
        if forgets:
            task.numbers = {name: value for name, value in task.numbers.items() if "bytes" not in name}
        found: list[Any] = []
        for key, value in pairs:
            self._time += 1
            found += task.process("in", Record(key.encode(), value.encode(), self._time))
        task.flush()
        return [each.value.decode() for each in found if each.topic == "out"]


@pytest.mark.parametrize("forgets", [False, True])
def test_bytes_bound_the_buffer_from_batch_to_batch(forgets: bool) -> None:
    run = Run(until_time_limit(10_000, bytes_max=700))
    assert run.batch(("a", "x" * 200), ("b", "y" * 200)) == []
    assert run.batch(("b", "Y" * 200), forgets=forgets) == []  # it took the place of the other one
    assert run.batch(("c", "z" * 200), forgets=forgets) == ["x" * 200]
    assert run.batch(("b", "short"), ("d", "w" * 100), forgets=forgets) == []
    assert run.batch(("e", "v" * 1000), forgets=forgets) == ["short", "z" * 200, "w" * 100, "v" * 1000]
    assert run.batch(("f", "u" * 500), forgets=forgets) == []  # nothing waited any more


def test_records_and_bytes_bound_it_together() -> None:
    run = Run(until_time_limit(10_000, records_max=2, bytes_max=700))
    assert run.batch(("a", "1"), ("b", "2"), ("c", "3")) == ["1"]
    assert run.batch(("d", "x" * 700)) == ["2", "3", "x" * 700]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (until_time_limit(10_000, records_max=2, is_strict=True), "3 of at most 2 records wait"),
        (until_time_limit(10_000, bytes_max=200, is_strict=True), r"\d+ of at most 200 bytes wait"),
    ],
)
def test_a_full_strict_buffer_stops_the_task(rules: Suppression, words: str) -> None:
    run = Run(rules)
    assert run.batch(("a", "1"), ("a", "2")) == []
    with pytest.raises(TaskError, match=words):
        run.batch(*((key, "x" * 50) for key in "bcdef"))


@pytest.mark.parametrize(
    "given",
    [{"records_max": 0}, {"bytes_max": -1}, {"bytes_max": 1.5}, {"is_strict": True}],
)
def test_bounds_that_cannot_be_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"is needed|is_strict needs"):
        until_time_limit(10, **given)


def test_durations_may_be_timedeltas() -> None:
    second: Any = timedelta(seconds=1)
    half: Any = timedelta(milliseconds=500)
    assert TimeWindows(second, half, second) == TimeWindows(1000, 500, 1000)
    assert TimeWindows(second, second).advance_by(half) == TimeWindows(1000, 500)
    assert SlidingWindows(second, half) == SlidingWindows(1000, 500)
    assert SessionWindows(second, half) == SessionWindows(1000, 500)
    assert UnlimitedWindows(second) == UnlimitedWindows(1000)
    assert JoinWindows(second, half, half) == JoinWindows(1000, 500, 500)
    assert JoinWindows(0, 0).before(second).after(half) == JoinWindows(1000, 500)
    assert until_time_limit(second) == until_time_limit(1000)
    assert until_window_closes(bytes_max=5).is_strict
    with pytest.raises(WindowError, match="at least 1 ms"):
        TimeWindows(timedelta(0), second)  # type: ignore[arg-type]
    with pytest.raises(WindowError, match="milliseconds as an int, or a timedelta"):
        TimeWindows("5", 5)  # type: ignore[arg-type]

"""Functions over batches: where they are taken and where refused; results are the same on both roads."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
import pytest
from tests.streams.columns.batches import Both, Given, part, plan

from barnabas.plans.interpreter.records import Record
from barnabas.streams import StreamsBuilder, TestDriver, arrow_function, pandas_function
from barnabas.streams.columns.logic import run_by_columns

pandas = pytest.importorskip("pandas")
NUMBERS = [number.to_bytes(8, "big", signed=True) for number in (-5, 0, 1, 70)]


@pandas_function
def doubled(numbers: Any) -> Any:
    return numbers * 2


@pandas_function
def positive(numbers: Any) -> Any:
    return numbers > 0


@arrow_function
def above(numbers: Any) -> Any:
    return pc.greater(numbers, 0)


def records(count: int) -> list[Given]:
    rng = random.Random(count)
    return [(b"a", rng.choice(NUMBERS), at) for at in range(count)]


@pytest.mark.parametrize("predicate", [positive, above])
@pytest.mark.parametrize("is_negated", [False, True])
def test_a_filter_takes_a_batch(predicate: Any, is_negated: bool) -> None:
    def build(builder: StreamsBuilder) -> None:
        numbers = builder.stream("in", value=int)
        kept = numbers.filter_not(predicate) if is_negated else numbers.filter(predicate)
        kept.map_values(doubled, value=int).to("out")

    both = Both(plan(build))
    both.run([part("in", records(50))])
    both.check()
    assert both.columns.written == both.interpreter.written
    wanted = sum(
        (int.from_bytes(each[1] or b"", "big", signed=True) > 0) is not is_negated for each in records(50)
    )
    assert len(both.columns.written) == wanted


def test_the_test_driver_calls_them_with_one_value() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in", value=int).filter(positive).map_values(doubled, value=int).to("out")
    with TestDriver(builder.build()) as driver:
        topic = driver.input("in", value=int)
        for number in (-1, 3):
            topic.pipe("a", number)
        assert [value for _, value in driver.output("out", value=int).pairs()] == [6]


def kept(numbers: Any) -> Any:
    return numbers[numbers > 0]


def test_a_function_that_gives_too_few_values_fails_the_records_alone() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in", value=int).map_values(pandas_function(kept), value=int).to("out")

    both = Both(plan(build))
    given = [part("in", records(20))]
    assert run_by_columns(both.columns.task, given) is None
    task = both.interpreter.task()
    with pytest.raises(Exception, match="gave 0 values for one"):
        for each in records(20):
            task.process("in", Record(*each))


REFUSED: dict[str, Callable[[StreamsBuilder], Any]] = {
    "map": lambda b: b.stream("in").map(doubled),
    "map_values": lambda b: b.stream("in").map_values(doubled, with_key=True),
    "flat_map": lambda b: b.stream("in").flat_map(doubled),
    "flat_map_values": lambda b: b.stream("in").flat_map_values(doubled),
    "select_key": lambda b: b.stream("in").select_key(doubled),
    "group_by": lambda b: b.stream("in").group_by(doubled),
    "peek": lambda b: b.stream("in").peek(doubled),
    "foreach": lambda b: b.stream("in").foreach(doubled),
    "split": lambda b: b.stream("in").split({"yes": positive}),
    "reduce": lambda b: b.stream("in").group_by_key().reduce(doubled),
    "table filter": lambda b: b.table("in").filter(positive),
    "table map_values": lambda b: b.table("in").map_values(doubled),
    "table group_by": lambda b: b.table("in").group_by(doubled),
    "join": lambda b: b.stream("in").join(b.table("two"), doubled),
}


@pytest.mark.parametrize("name", REFUSED)
def test_elsewhere_they_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match="is a pandas_function: such functions are for map_values"):
        REFUSED[name](StreamsBuilder("app"))

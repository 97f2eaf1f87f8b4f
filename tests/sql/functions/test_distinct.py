"""COUNT_DISTINCT: exact for few values, within its error for many, in a state that does not grow."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal as Number
from typing import Any

import pytest

from barnabas.sql.analysis.serdes import of_row_bytes, to_row_bytes
from barnabas.sql.functions import distinct
from barnabas.sql.functions.aggregates import Udaf, aggregate
from barnabas.sql.types.sql_types import STRING

COUNT: Udaf = aggregate("COUNT_DISTINCT", [STRING], [None])


def state_of(values: Any) -> Any:
    state = COUNT.initial()
    for value in values:
        state = COUNT.add(state, value)
    return state


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1_000])
def test_few_values_are_counted_exactly(count: int) -> None:
    values = [f"value {each}" for each in range(count)]
    assert COUNT.result(state_of(random.Random(1).sample(values * 3, 3 * count))) == count


@pytest.mark.parametrize("count", [1_001, 5_000, 40_000, 200_000])
def test_many_values_are_estimated_in_a_state_of_fixed_size(count: int) -> None:
    state = state_of(f"value {each}" for each in range(count))
    assert abs(COUNT.result(state) - count) < 0.03 * count
    assert len(to_row_bytes(state)) < 25_000
    assert COUNT.add(state, "value 5") == state


def test_values_of_all_types_are_told_apart() -> None:
    values = [
        *("a", "b", "", 1, 2, -1, 0.5, True, b"a", Number("1.5"), dt.date(2024, 1, 1)),
        *([1, 2], [2, 1], [12], {"a": 1, "b": None}, {"a": None, "b": 1}, dt.time(1, 2)),
    ]
    assert COUNT.result(state_of([*values, *values])) == len(values)
    same = [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
    assert COUNT.result(state_of(same)) == 1
    assert COUNT.result(state_of([Number("1.50"), Number("1.5")])) == 1


def test_states_are_kept_and_merged() -> None:
    rng = random.Random(2)
    for sizes in ((3, 5), (900, 900), (3_000, 10), (10, 3_000), (3_000, 3_000)):
        groups = [[f"v{rng.randrange(5_000)}" for _ in range(size)] for size in sizes]
        states = [of_row_bytes(to_row_bytes(state_of(group))) for group in groups]
        merged = COUNT.merge(*states)
        assert COUNT.result(merged) == COUNT.result(state_of([*groups[0], *groups[1]]))
        assert states == [state_of(group) for group in groups]  # a merge changes neither


def test_states_of_earlier_versions_go_on() -> None:
    old = ["a", "b"]
    assert COUNT.result(old) == 2
    assert COUNT.result(COUNT.add(old, "b")) == 2
    assert COUNT.result(COUNT.add(old, "c")) == 3
    assert COUNT.result(COUNT.merge(old, state_of(["a", "z"]))) == 3


def test_the_hash_is_the_same_in_every_process() -> None:
    assert distinct.hash_of("a") == 0x40F89E395B66422F

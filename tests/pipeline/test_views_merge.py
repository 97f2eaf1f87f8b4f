"""Parts of rows, merged, are the result of all rows: for every measure, however the rows are cut."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.row_merge import Merger, add, greatest, least
from pipeline.views_model import LAYOUT, Order, expected, stored

orders = st.builds(
    Order,
    order_id=st.uuids().map(str),
    shop=st.just("berlin"),
    amount=st.integers(-1000, 1000),
    customer=st.none() | st.sampled_from("abcdef"),
    status=st.sampled_from(["new", "paid", "sent"]),
    minute=st.integers(0, 5),
)


def row(rows: list[Order]) -> tuple[Any, ...]:
    (found,) = stored(rows)
    return tuple(found[column.name] for column in LAYOUT.stored)


@given(st.lists(st.lists(orders, min_size=1), min_size=1))
def test_parts_merged_are_the_result_of_all_rows(parts: list[list[Order]]) -> None:
    merger = Merger(LAYOUT)
    merged = merger.fold(None, [(False, row(part)) for part in parts])
    assert merged is not None
    shown = dict(zip((column.name for column in LAYOUT.stored), merged, strict=True))
    (whole,) = expected(order for part in parts for order in part).values()
    assert {name: shown[name] for name in whole if name != "mean"} == {
        name: value for name, value in whole.items() if name != "mean"
    }


@given(st.lists(orders, min_size=1), st.lists(orders, min_size=1), st.lists(orders, min_size=1))
def test_it_does_not_matter_which_parts_are_merged_first(
    a: list[Order], b: list[Order], c: list[Order]
) -> None:
    merger = Merger(LAYOUT)
    first = merger.merge(merger.merge(row(a), row(b)), row(c))
    assert shown(first) == shown(merger.merge(row(a), merger.merge(row(b), row(c))))


def shown(merged: tuple[Any, ...]) -> list[Any]:
    """Sketches of the same values may differ in their bytes."""
    return [
        value
        for value, column in zip(merged, LAYOUT.stored, strict=True)
        if column.name != "_sketch_customers"
    ]


def test_a_replacement_drops_everything_before_and_a_deleted_key_starts_over() -> None:
    merger = Merger(LAYOUT)
    one, two = (row([Order(str(n), "berlin", n, None, "new", 0)]) for n in (1, 2))
    assert merger.fold(one, [(True, two)]) == two
    assert merger.fold(one, [(True, None)]) is None
    assert merger.fold(one, [(True, None), (False, two)]) == two


def test_nulls_are_ignored_and_nan_is_the_greatest_number() -> None:
    assert [add(None, None), add(1, None), add(None, 2), add(1, 2)] == [None, 1, 2, 3]
    assert [least(None, None), least(None, 2), least(3, 2)] == [None, 2, 2]
    assert [greatest(None, None), greatest(2, None), greatest(3, 2)] == [None, 2, 3]
    assert math.isnan(greatest(math.nan, math.inf)) and least(math.nan, math.inf) == math.inf


@given(st.lists(st.sets(st.text(max_size=3), max_size=40), max_size=5))
def test_few_distinct_values_are_counted_exactly(parts: list[set[str]]) -> None:
    merged = sketches.union(sketches.of(part) for part in parts)
    assert sketches.estimate(merged) == len(set().union(*parts))


def test_many_distinct_values_are_counted_within_five_percent() -> None:
    merged = sketches.union(
        sketches.of(map(str, range(start, start + 30_000))) for start in (0, 20_000, 70_000)
    )
    assert abs(sketches.estimate(merged) - 80_000) < 4_000

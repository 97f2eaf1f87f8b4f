"""Parts of rows, merged in SQL, are the result of all rows: for every measure, however the rows are cut."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.pipeline.serving.store import merging, sketch_unions
from barnabas.pipeline.serving.store.duckdb_store import DuckDBDialect, DuckDBTransaction
from barnabas.pipeline.serving.store.selecting import derived
from barnabas.pipeline.serving.store.transaction import KEY, with_keys
from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from pipeline.views_model import LAYOUT, Order, by_key, rows_of, stored

orders = st.builds(
    Order,
    order_id=st.uuids().map(str),
    shop=st.sampled_from(["berlin", None, "rome"]),
    amount=st.integers(-1000, 1000),
    customer=st.none() | st.sampled_from("abcdef"),
    status=st.sampled_from(["new", "paid", "sent"]),
    minute=st.integers(0, 5),
)
shared = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        yield found


def merged(database: duckdb.DuckDBPyConnection, layout: Layout, parts: Sequence[pa.Table]) -> pa.Table:
    """The parts merged as the store merges them, with derived columns."""
    with database.cursor() as cursor:
        transaction = DuckDBTransaction(cursor)
        schema = layout.schema.append(pa.field(KEY, pa.string()))
        batches = [batch for part in parts for batch in part.to_batches()]
        transaction.load("incoming", schema, (with_keys(batch, layout) for batch in batches))
        rows = "SELECT * FROM incoming"
        transaction.make("merged", merging.merged(DuckDBDialect(), layout, rows))
        sketch_unions.unite(transaction, layout, rows, "merged")
        shown = [
            f'{derived(column.expression or "", DuckDBDialect(), column.type)} AS "{column.name}"'
            for column in layout.derived
        ]
        return transaction.table(f"SELECT {', '.join(['*', *shown])} FROM merged", None)


def part(rows: list[Order]) -> pa.Table:
    return pa.Table.from_pylist(stored(rows), schema=LAYOUT.schema)


def visible(rows: pa.Table) -> dict[str | None, dict[str, Any]]:
    hidden = {"place", KEY, *(column.name for column in LAYOUT.columns if column.role is Role.HIDDEN)}
    return by_key(
        {name: value for name, value in row.items() if name not in hidden} for row in rows.to_pylist()
    )


@shared
@given(st.lists(st.lists(orders, min_size=1, max_size=12), min_size=1, max_size=6))
def test_parts_merged_are_the_result_of_all_rows(
    database: duckdb.DuckDBPyConnection, parts: list[list[Order]]
) -> None:
    found = visible(merged(database, LAYOUT, [part(rows) for rows in parts]))
    assert found == rows_of(order for rows in parts for order in rows)


@shared
@given(st.lists(st.lists(orders, min_size=1, max_size=8), min_size=3, max_size=3))
def test_it_does_not_matter_which_parts_are_merged_first(
    database: duckdb.DuckDBPyConnection, parts: list[list[Order]]
) -> None:
    a, b, c = (part(rows) for rows in parts)
    first = merged(database, LAYOUT, [a, b]).select(LAYOUT.schema.names).cast(LAYOUT.schema)
    last = merged(database, LAYOUT, [b, c]).select(LAYOUT.schema.names).cast(LAYOUT.schema)
    assert visible(merged(database, LAYOUT, [first, c])) == visible(merged(database, LAYOUT, [a, last]))


VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "bigint": [3, None, -4],
    "double": [math.nan, 1.5, None, math.inf],
    "string": ["b", "ü", None, "", "a"],
    "binary": [b"b", b"", None, b"\x00\xff", b"\xff"],
}


@pytest.mark.parametrize("type", VALUES)
def test_nulls_are_ignored_and_nan_is_the_greatest_number(
    database: duckdb.DuckDBPyConnection, type: str
) -> None:
    columns = (
        Column("least", type, Role.MEASURE, Merge.MIN),
        Column("most", type, Role.MEASURE, Merge.MAX),
        Column("final", type, Role.MEASURE, Merge.LAST),
        Column("_at_final", "bigint", Role.HIDDEN),
    )
    layout = Layout("typed", columns, "types")
    values = VALUES[type]
    rows = [
        pa.Table.from_pylist(
            [{"least": value, "most": value, "final": value, "_at_final": 1}], schema=layout.schema
        )
        for value in values
    ]

    def rank(value: Any) -> tuple[bool, Any]:
        return value != value, 0 if value != value else value

    (found,) = merged(database, layout, rows).to_pylist()
    present = [value for value in values if value is not None]
    assert repr(found["least"]) == repr(min(present, key=rank))
    assert repr(found["most"]) == repr(found["final"]) == repr(max(present, key=rank))
    (nothing,) = merged(database, layout, [rows[values.index(None)]] * 2).to_pylist()
    assert (nothing["least"], nothing["most"], nothing["final"]) == (None, None, None)


def test_a_later_null_is_the_last_value(database: duckdb.DuckDBPyConnection) -> None:
    columns = (
        Column("final", "string", Role.MEASURE, Merge.LAST),
        Column("_at_final", "bigint", Role.HIDDEN),
    )
    layout = Layout("last", columns, "types")
    rows = [
        pa.Table.from_pylist([{"final": value, "_at_final": at}], schema=layout.schema)
        for value, at in (("a", 1), (None, 2), ("z", None))
    ]
    (found,) = merged(database, layout, rows).to_pylist()
    assert (found["final"], found["_at_final"]) == (None, 2)


@given(st.lists(st.sets(st.text(max_size=3), max_size=40), max_size=5))
def test_few_distinct_values_are_counted_exactly(parts: list[set[str]]) -> None:
    merged = sketches.union(sketches.of(part) for part in parts)
    assert sketches.estimate(merged) == len(set().union(*parts))


def test_many_distinct_values_are_counted_within_five_percent() -> None:
    merged = sketches.union(
        sketches.of(map(str, range(start, start + 30_000))) for start in (0, 20_000, 70_000)
    )
    assert abs(sketches.estimate(merged) - 80_000) < 4_000

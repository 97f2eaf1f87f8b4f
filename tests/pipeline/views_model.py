"""What a view must answer, computed by plain Python from the rows of its table; and parts made the same
way. The view has every kind of measure, an average, a variance, a window function and HAVING."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import fmean, pvariance
from typing import Any

import pyarrow as pa

from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from barnabas.pipeline.views.parts import GONE, REPLACES, BatchPart, Joined, SpeedPart, TableVersion

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
SQL = """SELECT shop, count(*) AS orders, sum(amount) AS revenue, min(amount) AS cheapest,
    max(amount) AS dearest, count(DISTINCT customer) AS customers, max_by(status, at) AS status,
    avg(amount) AS average, var_pop(amount) AS spread, rank() OVER (ORDER BY sum(amount) DESC) AS place
    FROM orders GROUP BY shop HAVING abs(sum(amount)) % 13 <> 12"""
MEASURES = {
    "orders": "count",
    "revenue": "sum",
    "cheapest": "min",
    "dearest": "max",
    "customers": "distinct",
    "status": "last",
    "average": "avg",
    "spread": "variance",
    "place": "computed",
    "mean": "revenue / orders",
}
LAYOUT = Layout(
    "revenue",
    (
        Column("shop", "string", Role.KEY),
        Column("orders", "bigint", Role.MEASURE, Merge.COUNT),
        Column("revenue", "bigint", Role.MEASURE, Merge.SUM),
        Column("cheapest", "bigint", Role.MEASURE, Merge.MIN),
        Column("dearest", "bigint", Role.MEASURE, Merge.MAX),
        Column("customers", "bigint", Role.MEASURE, Merge.DISTINCT),
        Column("status", "string", Role.MEASURE, Merge.LAST),
        Column("average", "double", Role.DERIVED, expression="`_part_0` / `_part_1`"),
        Column("spread", "double", Role.DERIVED, expression="(`_part_2` / `_part_2_n`)"),
        Column("place", "int", Role.DERIVED, expression="RANK() OVER (ORDER BY `revenue` DESC)"),
        Column("_sketch_customers", "binary", Role.HIDDEN),
        Column("_at_status", "timestamp", Role.HIDDEN),
        Column("_part_0", "double", Role.HIDDEN, Merge.SUM),
        Column("_part_1", "bigint", Role.HIDDEN, Merge.COUNT),
        Column("_part_2", "double", Role.HIDDEN, Merge.SPREAD),
        Column("_part_2_n", "bigint", Role.HIDDEN, Merge.COUNT),
        Column("_part_2_sum", "double", Role.HIDDEN, Merge.SUM),
        Column("mean", "double", Role.DERIVED, expression="revenue / orders"),
    ),
    "trusted.orders",
    "ABS(`revenue`) % 13 <> 12",
)
DIGITS = 6  # of numbers that are compared


@dataclass(frozen=True, slots=True)
class Order:
    """A row of the table."""

    order_id: str
    shop: str | None
    amount: int
    customer: str | None
    status: str
    minute: int

    @property
    def at(self) -> datetime:
        return BEGINNING + timedelta(minutes=self.minute)


def grouped(orders: Iterable[Order]) -> dict[str | None, list[Order]]:
    shops: dict[str | None, list[Order]] = {}
    for order in orders:
        shops.setdefault(order.shop, []).append(order)
    return shops


def expected(orders: Iterable[Order]) -> dict[str | None, dict[str, Any]]:
    """The view's visible rows by key: those that HAVING lets through."""
    shown = {shop: row for shop, row in rows_of(orders).items() if abs(row["revenue"]) % 13 != 12}
    for row in shown.values():
        row["place"] = 1 + sum(other["revenue"] > row["revenue"] for other in shown.values())
    return shown


def rows_of(orders: Iterable[Order]) -> dict[str | None, dict[str, Any]]:
    return {
        shop: {
            "shop": shop,
            "orders": len(rows),
            "revenue": sum(row.amount for row in rows),
            "cheapest": min(row.amount for row in rows),
            "dearest": max(row.amount for row in rows),
            "customers": len({row.customer for row in rows if row.customer is not None}),
            "status": max(rows, key=lambda row: (row.at, row.status)).status,
            "average": round(fmean(row.amount for row in rows), DIGITS),
            "spread": round(pvariance([row.amount for row in rows]), DIGITS),
            "mean": round(sum(row.amount for row in rows) / len(rows), DIGITS),
        }
        for shop, rows in grouped(orders).items()
    }


def by_key(rows: Iterable[dict[str, Any]]) -> dict[str | None, dict[str, Any]]:
    """An answer's rows by key; two rows of one key are an error."""
    found: dict[str | None, dict[str, Any]] = {}
    for row in rows:
        assert row["shop"] not in found, f"{row['shop']} is there twice"
        found[row["shop"]] = {
            name: round(value, DIGITS) if isinstance(value, float) else value for name, value in row.items()
        }
    return found


def stored(orders: Iterable[Order]) -> list[dict[str, Any]]:
    """Rows of a part: visible ones and those that merging needs."""
    orders = list(orders)
    shops = grouped(orders)
    return [
        {
            **row,
            "_sketch_customers": sketches.of(
                order.customer for order in shops[shop] if order.customer is not None
            ),
            "_at_status": max(order.at for order in shops[shop]),
            "_part_0": float(row["revenue"]),
            "_part_1": row["orders"],
            "_part_2": pvariance([order.amount for order in shops[shop]]) * row["orders"],
            "_part_2_n": row["orders"],
            "_part_2_sum": float(row["revenue"]),
        }
        for shop, row in rows_of(orders).items()
    ]


def committed(version: int) -> TableVersion:
    return TableVersion(version, BEGINNING + timedelta(seconds=version))


def batch_part(
    version: int, orders: Iterable[Order], layout: Layout = LAYOUT, joined: Joined | None = None
) -> BatchPart:
    rows = pa.Table.from_pylist(stored(orders), schema=layout.schema)
    return BatchPart(layout, committed(version), rows, joined or {})


def speed_part(
    after: int,
    upto: int,
    added: Iterable[Order],
    touched: Iterable[str | None] = (),
    now: Iterable[Order] = (),
    joined_after: Joined | None = None,
    joined: Joined | None = None,
) -> SpeedPart:
    """Increments for `added`; the `touched` keys are replaced by what they are `now`."""
    touched, now = list(touched), list(now)
    rows = [
        {**row, REPLACES: False, GONE: False}
        for row in stored(order for order in added if order.shop not in touched)
    ]
    there = stored(order for order in now if order.shop in touched)
    rows += [{**row, REPLACES: True, GONE: False} for row in there]
    lost = set(touched) - {row["shop"] for row in there}
    rows += [{"shop": shop, REPLACES: True, GONE: True} for shop in sorted(lost, key=str)]
    schema = LAYOUT.schema.append(pa.field(REPLACES, pa.bool_())).append(pa.field(GONE, pa.bool_()))
    table = pa.Table.from_pylist(rows, schema=schema)
    return SpeedPart(LAYOUT, after, committed(upto), table, joined_after or {}, joined or {})

"""What a view must answer, computed by plain Python from the rows of its table; and parts made the same
way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from barnabas.pipeline.views.parts import GONE, REPLACES, BatchPart, SpeedPart, TableVersion

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
SQL = """SELECT shop, count(*) AS orders, sum(amount) AS revenue, min(amount) AS cheapest,
    max(amount) AS dearest, count(DISTINCT customer) AS customers, max_by(status, at) AS status
    FROM orders GROUP BY shop"""
MEASURES = {
    "orders": "count",
    "revenue": "sum",
    "cheapest": "min",
    "dearest": "max",
    "customers": "distinct",
    "status": "last",
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
        Column("_sketch_customers", "binary", Role.HIDDEN),
        Column("_at_status", "timestamp", Role.HIDDEN),
        Column("mean", "double", Role.DERIVED, expression="revenue / orders"),
    ),
    "trusted.orders",
)


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


def expected(orders: Iterable[Order]) -> dict[str | None, dict[str, Any]]:
    """The view's visible rows by key."""
    shops: dict[str | None, list[Order]] = {}
    for order in orders:
        shops.setdefault(order.shop, []).append(order)
    return {
        shop: {
            "shop": shop,
            "orders": len(rows),
            "revenue": sum(row.amount for row in rows),
            "cheapest": min(row.amount for row in rows),
            "dearest": max(row.amount for row in rows),
            "customers": len({row.customer for row in rows if row.customer is not None}),
            "status": max(rows, key=lambda row: (row.at, row.status)).status,
            "mean": sum(row.amount for row in rows) / len(rows),
        }
        for shop, rows in shops.items()
    }


def by_key(rows: Iterable[dict[str, Any]]) -> dict[str | None, dict[str, Any]]:
    """An answer's rows by key; two rows of one key are an error."""
    found: dict[str | None, dict[str, Any]] = {}
    for row in rows:
        assert row["shop"] not in found, f"{row['shop']} is there twice"
        found[row["shop"]] = row
    return found


def stored(orders: Iterable[Order]) -> list[dict[str, Any]]:
    """Rows of a part: visible ones and those that merging needs."""
    orders = list(orders)
    return [
        {
            **row,
            "_sketch_customers": sketches.of(
                order.customer for order in orders if order.shop == shop and order.customer is not None
            ),
            "_at_status": max(order.at for order in orders if order.shop == shop),
        }
        for shop, row in expected(orders).items()
    ]


def committed(version: int) -> TableVersion:
    return TableVersion(version, BEGINNING + timedelta(seconds=version))


def batch_part(version: int, orders: Iterable[Order], layout: Layout = LAYOUT) -> BatchPart:
    rows = pa.Table.from_pylist(stored(orders), schema=layout.schema)
    return BatchPart(layout, committed(version), rows)


def speed_part(
    after: int,
    upto: int,
    added: Iterable[Order],
    touched: Iterable[str | None] = (),
    now: Iterable[Order] = (),
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
    return SpeedPart(LAYOUT, after, committed(upto), pa.Table.from_pylist(rows, schema=schema))

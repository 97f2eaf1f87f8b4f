"""A pipeline of orders for tests of zones: one source, one table a zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from barnabas.pipeline import (
    Pipeline,
    Refined,
    Schema,
    Staging,
    TableName,
    TopicSource,
    Trusted,
    Zone,
    expression,
    fresh,
    in_range,
    not_null,
    pattern,
    unique,
)

DDL = "order_id STRING, shop STRING, amount DOUBLE, email STRING, card STRING, at TIMESTAMP"
START = datetime(2026, 1, 1, tzinfo=UTC)
RULES = (
    not_null("shop"),
    in_range("amount", 0, 1000),
    pattern("shop", "[a-z]+"),
    unique("email"),
    expression("amount <> 13", name="lucky"),
    fresh("at", 3650 * 86400.0),
)


def orders_pipeline(
    lake: str,
    bootstrap: str,
    topic: str,
    *,
    source: Mapping[str, Any] | None = None,
    staging: Mapping[str, Any] | None = None,
    trusted: Mapping[str, Any] | None = None,
    **other: Any,
) -> Pipeline:
    given = {"schema": Schema(ddl=DDL), "event_time": "at", **(source or {})}
    return Pipeline(
        name="shop",
        lake=lake,
        sources=[TopicSource(name="orders", bootstrap_servers=bootstrap, subscribe=topic, **given)],
        staging=[Staging(**{"name": "orders", "source": "orders", "key": ["order_id"], **(staging or {})})],
        trusted=[
            Trusted(
                **{
                    "name": "orders",
                    "staging": "orders",
                    "rules": RULES,
                    "hash": ["email"],
                    **(trusted or {}),
                }
            )
        ],
        **other,
    )


def order(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "order_id": f"o{number}",
        "shop": "abc"[number % 3],
        "amount": float(number % 1000),
        "email": f"u{number}@example.org",
        "card": "4111111111111111",
        "at": (START + timedelta(minutes=number)).isoformat(),
        **changes,
    }


def rows(spark: Any, pipeline: Pipeline, zone: str, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Of a table, sorted."""
    frame = pipeline.lake_location.read(spark, TableName(Zone(zone), name)).select(*columns)
    return sorted((tuple(row) for row in frame.collect()), key=repr)


DOUBLED = Refined(name="doubled", sql="SELECT order_id, amount * 2 AS twice FROM orders WHERE amount > 1")

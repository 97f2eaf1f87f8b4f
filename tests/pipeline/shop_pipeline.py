"""A pipeline as values that several tests look at: nothing of it runs."""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline import (
    Pipeline,
    Refined,
    Schema,
    Secret,
    Serving,
    Staging,
    TableSource,
    TopicSource,
    Trusted,
    View,
    in_range,
    not_null,
    on_schedule,
)

ORDERS = "order_id STRING, customer_id BIGINT, shop STRING, amount DOUBLE, at TIMESTAMP"
REVENUE = "SELECT shop, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY shop"
ENRICHED = "SELECT c.country, o.amount FROM orders o JOIN customers c ON o.customer_id = c.id"


def shop(lake: Path) -> Pipeline:
    return Pipeline(
        name="shop",
        lake=str(lake),
        sources=[
            TopicSource(
                name="orders",
                bootstrap_servers="127.0.0.1:9092",
                subscribe="orders",
                schema=Schema(ddl=ORDERS),
                event_time="at",
            ),
            TableSource(
                name="customers",
                url="jdbc:postgresql://reader:hidden@127.0.0.1/shop",
                table="customers",
                user=Secret("${env:SHOP_USER}"),
                password=Secret("${env:SHOP_PASSWORD}"),
                schema=Schema(ddl="id BIGINT, email STRING, country STRING"),
                frequency=on_schedule("*/5 * * * *"),
            ),
        ],
        staging=[
            Staging(name="orders", source="orders", key=["order_id"]),
            Staging(name="customers", source="customers", key=["id"]),
        ],
        trusted=[
            Trusted(name="orders", staging="orders", rules=[not_null("order_id")]),
            Trusted(name="customers", staging="customers", hash=["email"]),
        ],
        refined=[Refined(name="enriched", sql=ENRICHED)],
        views=[
            View(
                name="revenue",
                source="trusted.orders",
                sql=REVENUE,
                keys=["shop"],
                measures={"orders": "count", "revenue": "sum"},
                batch="0 * * * *",
            ),
            View(
                name="countries",
                source="refined.enriched",
                sql="SELECT country, sum(amount) AS revenue FROM enriched GROUP BY country",
                keys=["country"],
                measures={"revenue": "sum"},
            ),
        ],
        serving=Serving(token=Secret("${env:SHOP_TOKEN}")),
    )


RULES_CHANGED = (not_null("order_id"), in_range("amount", 0, 10_000))

"""The orders that the bench of pipelines sends, and the pipeline that reads them.

In: a broker, a topic, a lake. Out: rows as Spark's expressions, a `Pipeline` with the steps of
`bench.pipeline_by_hand`. Does not know: what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from barnabas.pipeline import (
    Maintenance,
    Pipeline,
    Refined,
    Schema,
    Serving,
    SparkSettings,
    Staging,
    TopicSource,
    Trusted,
    View,
    in_range,
    not_null,
    pattern,
)
from bench.pipeline_by_hand import REFINED, SCHEMA

PARTITIONS = 4
VALUE = (
    "to_json(named_struct('order_id', concat('o', id), 'customer_id', id % 1000,"
    " 'shop', element_at(array('berlin', 'lisbon', 'oslo'), cast(id % 3 + 1 as int)),"
    " 'product', 'espresso', 'amount', cast(id % 5000 as double) / 7,"
    " 'at', timestamp_millis(1700000000000 + id)))"
)
# One in a hundred is truncated, one in fifty is sent twice, one in fifty has an invalid amount.
ROWS = (
    'CASE WHEN id % 100 = 0 THEN \'{"order_id": "cut\' WHEN id % 50 = 7 THEN'
    f" replace({VALUE}, '\"amount\":', '\"amount\":-1') ELSE {VALUE} END"
)
TWICE = "explode(CASE WHEN id % 50 = 3 THEN array(1, 2) ELSE array(1) END)"
VIEW = View(
    name="shops",
    source="trusted.orders",
    sql="SELECT shop, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY shop",
    keys=["shop"],
    measures={"orders": "count", "revenue": "sum"},
)


@dataclass(frozen=True, slots=True)
class Scale:
    rows: int = 300_000
    rows_per_batch: int = 100_000
    rounds: int = 5
    samples: int = 150
    rate: int = 500  # orders a second, steadily
    steady_s: int = 30
    growth: int = 100_000
    growth_batch: int = 50_000
    millions: int = 30
    scale_batch: int = 250_000
    minutes: float = 9.0  # limit of the run; rounds end when their share is used up

    def share_s(self, share: float) -> float:
        return self.minutes * 60 * share


QUICK = Scale(
    rows=30_000,
    rows_per_batch=10_000,
    rounds=2,
    samples=20,
    rate=100,
    steady_s=10,
    growth=5_000,
    growth_batch=5_000,
    millions=4,
    minutes=4.0,
)


def pipeline_of(
    bootstrap: str, topic: str, lake: Path, rows_per_batch: int, *, refines: bool = True
) -> Pipeline:
    """A pipeline with the steps of `bench.pipeline_by_hand`, and a view."""
    return Pipeline(
        name="bench",
        lake=str(lake),
        spark=SparkSettings(master="local[2]", settings={"spark.driver.memory": "2g"}),
        sources=[
            TopicSource(
                name="orders",
                bootstrap_servers=bootstrap,
                subscribe=topic,
                schema=Schema(ddl=SCHEMA),
                event_time="at",
                rows_per_batch_max=rows_per_batch,
            )
        ],
        staging=[Staging(name="orders", source="orders", key=["order_id"])],
        trusted=[
            Trusted(
                name="orders",
                staging="orders",
                rules=[not_null("order_id"), in_range("amount", 0, 10_000), pattern("shop", "[a-z]+")],
            )
        ],
        refined=[Refined(name="large", sql=REFINED)] if refines else [],
        views=[VIEW],
        serving=Serving(port=0),
        maintenance=Maintenance(),
    )

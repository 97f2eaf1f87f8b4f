"""Both layers on Delta tables: what is served is what the table says, however the table changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline import Pipeline, Staging, TableName, TopicSource, Trusted, View
from barnabas.pipeline.ingest.results import AddedRows
from barnabas.pipeline.lake.tables import Lake
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Store
from barnabas.pipeline.serving.store.query import Query
from barnabas.pipeline.views.definition import DefinitionError
from barnabas.pipeline.views.layers import Layer, Outcome, Views
from barnabas.pipeline.views.part_files import LakeParts
from barnabas.pipeline.views.parts import BatchPart, ViewState
from pipeline.views_model import MEASURES, SQL, Order, by_key, expected

pytestmark = pytest.mark.timeout(600)
ORDERS = TableName.parse("trusted.orders")
SCHEMA = pa.schema(
    [
        ("order_id", pa.string()),
        ("shop", pa.string()),
        ("amount", pa.int64()),
        ("customer", pa.string()),
        ("status", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
REVENUE = View(name="revenue", source="trusted.orders", sql=SQL, keys=["shop"], measures=MEASURES)
TOTAL = View(
    name="total",
    source="trusted.orders",
    sql="SELECT count(*) AS n, sum(amount) AS s, last(status) AS status FROM orders WHERE amount > 0",
    measures={"n": "count", "s": "sum", "status": "last"},
)
LANDS = View(
    name="lands",
    source="trusted.orders",
    sql="""SELECT date_trunc('hour', o.at) AS hour, land, count(*) AS n FROM orders o
        LEFT JOIN customers c ON o.customer = c.customer GROUP BY 1, land""",
    keys=["hour", "land"],
    measures={"n": "count"},
)


def fields(order: Order) -> tuple[Any, ...]:
    return (order.order_id, order.shop, order.amount, order.customer, order.status, order.at)


class Shop:
    """A table of orders, views over it, and a store."""

    def __init__(self, spark: Any, folder: Path, *views: View) -> None:
        self.spark = spark
        self.views_of = views
        self.lake = folder / "lake"
        parts = LakeParts(Lake(str(self.lake)))
        self.store: Store = open_store("duckdb", name="shop", folder=folder / "store", lake=parts)
        self.views = self.defined(*views)

    def defined(self, *views: View, parts: Any = None) -> Views:
        source = TopicSource(name="orders", bootstrap_servers="nowhere", subscribe="orders", event_time="at")
        pipeline = Pipeline(
            name="shop",
            lake=str(self.lake),
            sources=[source],
            staging=[Staging(name="orders", source="orders", key=["order_id"])],
            trusted=[Trusted(name="orders", staging="orders"), Trusted(name="customers", staging="orders")],
            views=views,
        )
        self.path = pipeline.lake_location.path(ORDERS)
        self.pipeline = pipeline
        return Views(self.spark, pipeline, parts or self.store)

    def add(self, *orders: Order, feed: bool = True, number: int | None = None) -> None:
        rows = pa.Table.from_pylist([dict(zip(SCHEMA.names, fields(o), strict=True)) for o in orders], SCHEMA)
        writer = self.spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append")
        if number is not None:
            writer = writer.option("txnAppId", "shop").option("txnVersion", number)
        writer.option("delta.enableChangeDataFeed", str(feed).lower()).save(self.path)

    def change(self, statement: str) -> None:
        self.spark.sql(statement.format(orders=f"delta.`{self.path}`"))

    def rows(self, view: str, as_of: int | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.store.answer(Query(view, as_of=as_of)).rows.to_pylist()
        return found

    def check(self, orders: Iterable[Order]) -> None:
        assert by_key(self.rows("revenue")) == expected(orders)

    def version(self) -> int:
        return self.pipeline.lake_location.version(self.spark, ORDERS)


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(spark, tmp_path, REVENUE, TOTAL)
    yield made
    made.store.close()


def order(number: int, shop: str | None = "berlin", amount: int = 1, minute: int = 0) -> Order:
    return Order(f"o{number}", shop, amount, f"c{number % 3}", f"s{number}", minute)


def brief(outcome: Outcome) -> tuple[Layer, int | None, int | None]:
    return outcome.layer, outcome.after, outcome.version


def test_rows_that_are_added_changed_and_deleted_show_at_once_and_after_the_horizon_moves(shop: Shop) -> None:
    assert brief(shop.views.catch_up("revenue")) == (Layer.NONE, None, None)  # no table yet
    orders = [order(1), order(2, None, 5), order(3, "rome", -3, minute=9)]
    shop.add(*orders)
    assert brief(shop.views.catch_up("revenue")) == (Layer.BATCH, None, 0)
    shop.check(orders)
    orders += [order(4, "rome", 8, minute=3), order(5, "", 2)]
    shop.add(*orders[3:])
    assert brief(shop.views.catch_up("revenue")) == (Layer.SPEED, 0, 1)
    assert brief(shop.views.catch_up("revenue")) == (Layer.NONE, 1, 1)
    shop.check(orders)
    # An update moves a row to another shop, a delete takes the last one of a shop, in one catch-up with an
    # insert.
    shop.change("UPDATE {orders} SET shop = 'bonn' WHERE order_id = 'o1'")
    shop.change("DELETE FROM {orders} WHERE order_id IN ('o2', 'o3')")
    shop.add(order(6, "rome", 9), order(7, "paris"))
    now = [order(1, "bonn"), *orders[3:], order(6, "rome", 9), order(7, "paris")]
    outcome = shop.views.catch_up("revenue")
    assert brief(outcome) == (Layer.SPEED, 1, 4)
    assert outcome.rows == 5  # berlin and nobody gone, bonn and rome anew, paris one more; nothing else
    shop.check(now)
    shop.change("OPTIMIZE {orders}")
    assert shop.views.catch_up("revenue").rows == 0
    shop.check(now)
    assert brief(shop.views.refresh("revenue")) == (Layer.BATCH, 0, 5)
    shop.check(now)
    assert by_key(shop.rows("revenue", as_of=1)) == expected(orders)


@pytest.mark.long
def test_a_view_without_keys_has_one_row_whatever_its_rows_were(shop: Shop) -> None:
    shop.add(order(1, amount=4), order(2, amount=-3, minute=9))
    shop.views.catch_up("total")
    shop.add(order(3, amount=5, minute=8), order(4))
    shop.views.catch_up("total")
    assert shop.rows("total") == [{"n": 3, "s": 10, "status": "s3"}]
    shop.change("DELETE FROM {orders} WHERE order_id = 'o3'")
    shop.views.catch_up("total")
    assert shop.rows("total") == [{"n": 2, "s": 5, "status": "s4"}]


class Interrupted:
    """The store as a batch layer sees it that computes for long: others go on before its part arrives."""

    def __init__(self, store: Store, meanwhile: Any) -> None:
        self._store = store
        self._meanwhile = meanwhile

    def put_batch(self, part: BatchPart) -> ViewState:
        self._meanwhile()
        return self._store.put_batch(part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.long
def test_rows_that_arrive_while_the_batch_layer_computes_are_counted_once(shop: Shop) -> None:
    orders = [order(1), order(2, "rome")]
    shop.add(*orders)
    shop.views.catch_up("revenue")
    shop.add(order(3))  # the speed layer is behind when the batch layer begins

    def meanwhile() -> None:
        shop.add(order(4), order(5, "paris"))
        shop.change("DELETE FROM {orders} WHERE order_id = 'o2'")
        outcome = shop.views.catch_up("revenue")
        assert brief(outcome) == (Layer.SPEED, 0, 3)
        shop.check([order(1), order(3), order(4), order(5, "paris")])

    slow = shop.defined(REVENUE, parts=Interrupted(shop.store, meanwhile))
    assert brief(slow.refresh("revenue")) == (Layer.BATCH, 0, 1)
    state = shop.store.state("revenue")
    assert state is not None and (state.horizon.version, state.position.version) == (1, 3)
    shop.check([order(1), order(3), order(4), order(5, "paris")])


@pytest.mark.long
def test_rows_that_were_just_added_need_not_be_read_again(shop: Shop) -> None:
    shop.add(order(1))
    shop.views.catch_up("revenue")
    row = dict(zip(SCHEMA.names, fields(order(2, "rome", 4)), strict=True))
    rows = shop.spark.newSession().createDataFrame(pa.Table.from_pylist([row], SCHEMA))
    increments = shop.views.increments(ORDERS, rows)
    assert set(increments) == {"revenue", "total"}
    shop.add(order(2, "paris", 5), number=7)  # others, so that one can see which were taken
    assert brief(shop.views.catch_up("revenue", [AddedRows(ORDERS, 1, "shop", 7, increments)])) == (
        Layer.SPEED,
        0,
        1,
    )
    shop.check([order(1), order(2, "rome", 4)])
    # Of a version that another transaction made they are of no use.
    shop.add(order(3))
    shop.add(order(4), number=8)
    told = [AddedRows(ORDERS, 2, "shop", 7, increments), AddedRows(ORDERS, 3, "shop", 7, increments)]
    assert brief(shop.views.catch_up("revenue", told)) == (Layer.SPEED, 1, 3)
    shop.check([order(1), order(2, "rome", 4), order(3), order(4)])


@pytest.mark.long
def test_a_view_is_recomputed_without_a_change_feed_for_a_new_table_and_for_new_sql(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.add(feed=False)
    shop.add(order(1), feed=False)
    shop.views.catch_up("revenue")
    shop.add(order(2), feed=False)
    assert shop.views.catch_up("revenue").layer is Layer.BATCH
    assert "view revenue is recomputed: the changes of trusted.orders after version 1" in caplog.text
    shop.check([order(1), order(2)])
    for path in sorted(Path(shop.path).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    shop.add(order(3))
    assert brief(shop.views.catch_up("revenue")) == (Layer.BATCH, 2, 0)
    shop.check([order(3)])
    other = View(
        name="revenue",
        source="trusted.orders",
        sql="SELECT shop, count(*) AS n FROM orders WHERE amount > 0 GROUP BY shop",
        keys=["shop"],
        measures={"n": "count"},
    )
    changed = shop.defined(other)
    assert changed.catch_up("revenue").layer is Layer.BATCH
    shop.add(order(4, "rome"), order(5, "rome", -1))
    assert changed.catch_up("revenue").layer is Layer.SPEED
    assert shop.rows("revenue") == [{"shop": "berlin", "n": 1}, {"shop": "rome", "n": 1}]


@pytest.mark.long
def test_other_tables_are_looked_up_and_keys_may_be_times(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, LANDS, REVENUE)
    customers = shop.pipeline.lake_location.path(TableName.parse("trusted.customers"))
    rows = [("c1", "de"), ("c2", "fr")]
    spark.createDataFrame(rows, "customer STRING, land STRING").write.format("delta").save(customers)
    shop.add(order(1), order(2, minute=61))
    shop.views.catch_up("lands")
    shop.add(order(3), order(4), order(5, minute=62))
    shop.change("DELETE FROM {orders} WHERE order_id = 'o2'")
    shop.views.catch_up("lands")

    def found() -> list[tuple[datetime, str | None, int]]:
        return [(row["hour"].replace(tzinfo=None), row["land"], row["n"]) for row in shop.rows("lands")]

    zero, one = datetime(2026, 1, 1), datetime(2026, 1, 1, 1)
    assert found() == [(zero, "de", 2), (zero, None, 1), (one, "fr", 1)]
    shop.views.refresh("lands")
    assert found() == [(zero, "de", 2), (zero, None, 1), (one, "fr", 1)]
    assert shop.views.of(TableName.parse("trusted.customers")) == ["lands"]
    assert shop.views.of(ORDERS) == ["lands", "revenue"] == shop.views.fed_by(ORDERS)
    shop.store.close()


@pytest.mark.long
def test_many_distinct_values_are_counted_over_both_layers(shop: Shop) -> None:
    statement = """SELECT cast(id AS STRING) AS order_id, 'berlin' AS shop, 1L AS amount,
        cast(id AS STRING) AS customer, 'new' AS status, timestamp'2026-01-01' AS at FROM range({0}, {1})"""
    for start, end in ((0, 6_000), (3_000, 9_000)):
        writer = shop.spark.sql(statement.format(start, end)).write.format("delta").mode("append")
        writer.option("delta.enableChangeDataFeed", "true").save(shop.path)
        shop.views.catch_up("revenue")
    (row,) = shop.rows("revenue")
    assert row["orders"] == 12_000 and abs(row["customers"] - 9_000) < 450


def test_a_view_of_values_that_no_store_holds_is_refused(shop: Shop) -> None:
    shop.add(order(1))
    view = View(
        name="sets",
        source="trusted.orders",
        sql="SELECT shop, max(array(amount)) AS amounts FROM orders GROUP BY shop",
        keys=["shop"],
        measures={"amounts": "max"},
    )
    with pytest.raises(
        DefinitionError, match="the column amounts: views hold plain values, not array<bigint>"
    ):
        shop.defined(view).refresh("sets")
    with pytest.raises(KeyError):
        shop.views.refresh("nothing")

"""Views over joins: a change in any of the tables reaches the rows that it concerns, also old ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline import Pipeline, Staging, TableName, TopicSource, Trusted, View
from barnabas.pipeline.file.update_notes import update_lines
from barnabas.pipeline.lake import commits
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.query import Query
from barnabas.pipeline.views.layers import Layer, Views
from barnabas.pipeline.views.part_files import lake_parts
from barnabas.pipeline.views.parts import BatchPart, ViewState

pytestmark = pytest.mark.timeout(1800)
ORDERS, CUSTOMERS = TableName.parse("trusted.orders"), TableName.parse("trusted.customers")
SQL = """SELECT c.land AS land, window(o.at, '1 hour').start AS hour, count(*) AS n, avg(o.amount) AS mean
    FROM orders o LEFT JOIN customers c ON o.customer = c.customer
    GROUP BY c.land, window(o.at, '1 hour') HAVING count(*) <> 3"""
NESTED = """SELECT c.land AS land, count(*) AS n FROM orders o
    LEFT JOIN (SELECT * FROM customers) c ON o.customer = c.customer GROUP BY c.land"""
BY_LAND = View(name="by_land", source="trusted.orders", sql=SQL, keys=["land", "hour"],
               measures={"n": "count", "mean": "avg"})  # fmt: skip
WHO, LANDS = ("ann", "ben", "cid"), ("de", "fr", None)


class Interrupted:
    """The store as a batch layer sees it that computes for long: others go on before its part arrives."""

    def __init__(self, store: Any, meanwhile: Callable[[], object]) -> None:
        self._store = store
        self._meanwhile = meanwhile

    def put_batch(self, part: BatchPart) -> ViewState:
        self._meanwhile()
        found: ViewState = self._store.put_batch(part)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Shop:
    def __init__(self, spark: Any, folder: Path, rng: random.Random, view: View = BY_LAND) -> None:
        self.spark, self.rng, self.view = spark, rng, view
        self.pipeline = Pipeline(
            name="shop",
            lake=str(folder / "lake"),
            sources=[TopicSource(name="orders", bootstrap_servers="nowhere", subscribe="orders")],
            staging=[Staging(name="orders", source="orders")],
            trusted=[Trusted(name="orders", staging="orders"), Trusted(name="customers", staging="orders")],
            views=[view],
        )
        self.lake = self.pipeline.lake_location
        self.store = open_store("duckdb", name="s", folder=folder, lake=lake_parts(self.pipeline))
        self.views = Views(spark, self.pipeline, self.store)
        self._next = 0
        self.add_orders(6)
        self._append(CUSTOMERS, [("ann", "de")], "customer STRING, land STRING")

    def _append(self, table: TableName, rows: list[tuple[Any, ...]], ddl: str) -> None:
        frame = self.spark.createDataFrame(rows, ddl).coalesce(1)
        commits.append(frame, self.lake.path(table), None, properties=commits.CHANGES)

    def add_orders(self, count: int) -> None:
        rows = []
        for _ in range(count):
            self._next += 1
            who = self.rng.choice((*WHO, None))
            rows.append((self._next, who, self.rng.randint(0, 9), self.rng.randint(0, 2)))
        frame = self.spark.createDataFrame(rows, "id INT, customer STRING, amount BIGINT, hour INT").coalesce(
            1
        )
        frame = frame.selectExpr(
            "id",
            "customer",
            "amount",
            "timestamp'2026-01-01 00:10:00' + make_interval(0, 0, 0, 0, hour) AS at",
        )
        commits.append(frame, self.lake.path(ORDERS), None, properties=commits.CHANGES)

    def change(self) -> str:
        orders, customers = self.lake.identifier(ORDERS), self.lake.identifier(CUSTOMERS)
        kind = self.rng.choice(["add", "delete", "move", "customer", "land", "lost"])
        who, land = self.rng.choice(WHO), self.rng.choice(LANDS[:2])
        if kind == "add":
            self.add_orders(2)
        elif kind == "delete":
            self.spark.sql(f"DELETE FROM {orders} WHERE id = {self.rng.randint(1, self._next)}")
        elif kind == "move":
            some = self.rng.randint(1, self._next)
            self.spark.sql(f"UPDATE {orders} SET customer = '{who}', amount = amount + 1 WHERE id = {some}")
        elif kind == "customer":
            self._append(CUSTOMERS, [(who, land)], "customer STRING, land STRING")
        elif kind == "land":
            self.spark.sql(f"UPDATE {customers} SET land = '{land}' WHERE customer = '{who}'")
        else:
            self.spark.sql(f"DELETE FROM {customers} WHERE customer = '{who}'")
        return kind

    def catch_up(self) -> str:
        return str(self.views.catch_up(self.view.name).layer)

    def refresh(self) -> str:
        self.views.refresh(self.view.name)
        return "refresh"

    def refresh_meanwhile(self) -> str:
        """The batch layer is slow: tables change, and the speed layer goes on."""
        told: list[str] = []

        def meanwhile() -> None:
            told.extend([self.change(), self.catch_up(), self.change()])
            if self.rng.random() < 0.5:
                told.append(self.catch_up())

        slow = Views(self.spark, self.pipeline, Interrupted(self.store, meanwhile))  # type: ignore[arg-type]
        slow.refresh(self.view.name)
        return f"refresh while {told}"

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.store.answer(Query(self.view.name)).rows.to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def wanted(self) -> list[tuple[Any, ...]]:
        for table in (ORDERS, CUSTOMERS):
            self.lake.read(self.spark, table).createOrReplaceTempView(table.name)
        rows = self.spark.sql(self.view.sql).toArrow().to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.mark.long
def test_a_view_is_what_its_sql_gives_whichever_table_changed(spark: Any, tmp_path: Path) -> None:
    rng, steps = random.Random(15), 15
    shop = Shop(spark, tmp_path, rng)
    try:
        shop.catch_up()
        for number in range(steps):
            told = [shop.change() for _ in range(rng.randint(1, 3))]
            if rng.random() < 0.3 or number == 0:
                told.append(shop.refresh_meanwhile())
            elif rng.random() < 0.2:
                told.append(shop.refresh())
            told.append(shop.catch_up())
            assert shop.rows() == shop.wanted(), told
        assert shop.catch_up() == Layer.NONE
    finally:
        shop.store.close()


@pytest.mark.long
def test_a_view_that_cannot_follow_a_joined_table_sees_it_as_of_its_last_batch_part(
    spark: Any, tmp_path: Path
) -> None:
    view = View(name="nested", source="trusted.orders", sql=NESTED, keys=["land"], measures={"n": "count"},
                batch="0 0 * * *")  # fmt: skip
    shop = Shop(spark, tmp_path, random.Random(1), view)
    try:
        (note,) = update_lines(shop.pipeline)[1:]
        assert "as of its last batch part, because it joins a query" in note
        shop.catch_up()
        before = shop.rows()
        shop.spark.sql(f"UPDATE {shop.lake.identifier(CUSTOMERS)} SET land = 'fr'")
        assert shop.catch_up() == Layer.NONE and shop.rows() == before
        shop.refresh()
        assert shop.rows() == shop.wanted() != before
    finally:
        shop.store.close()

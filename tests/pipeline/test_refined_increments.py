"""Increments of refined tables: whatever changed in which input, the table is what its SQL gives now."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline import Pipeline, Refined, Staging, TableName, TopicSource, Trusted
from barnabas.pipeline.lake import commits
from barnabas.pipeline.refined import zone
from barnabas.pipeline.refined.progress import newest_progress
from barnabas.pipeline.spec.update_mode import UpdateMode, update_of

pytestmark = pytest.mark.timeout(1800)
ORDERS, CUSTOMERS = TableName.parse("trusted.orders"), TableName.parse("trusted.customers")
SHOPS, LANDS, CUSTOMERS_OF = ("berlin", "rome", None), ("de", "it", None), ("ann", "ben", "cid", None)
TABLES = {
    "joined": """SELECT o.shop, o.amount, c.land FROM orders o
        LEFT JOIN customers c ON o.customer = c.customer WHERE o.amount > 2""",
    "inner_one": "SELECT o.shop, c.land, o.amount + 1 AS more FROM orders o JOIN customers c USING(customer)",
    "sums": "SELECT shop, count(*) AS n, sum(amount) AS total, min(amount) AS low FROM orders GROUP BY shop",
    "lands": """SELECT c.land, avg(o.amount) AS mean, count(*) AS n FROM orders o
        LEFT JOIN customers c ON o.customer = c.customer GROUP BY c.land HAVING count(*) > 1""",
    "pairs": "SELECT DISTINCT shop, customer FROM orders",
    "hidden": "SELECT shop, upper(shop) AS customer, count(*) AS n FROM orders GROUP BY shop, customer",
    "aliased": "SELECT upper(shop) AS big, count(*) AS n FROM orders GROUP BY big",
    "strange": "SELECT shop, row_number() OVER (ORDER BY shop, amount, customer, id) AS place FROM orders",
}
MODES = {
    "joined": UpdateMode.ROWS,
    "inner_one": UpdateMode.ROWS,
    "sums": UpdateMode.GROUPS,
    "lands": UpdateMode.GROUPS,
    "pairs": UpdateMode.GROUPS,
    "hidden": UpdateMode.GROUPS,  # unless an input has a column `customer`: tables show that, not the SQL
    "aliased": UpdateMode.GROUPS,
    "strange": UpdateMode.WHOLE,
}


class Shop:
    """Two tables that change at random, and refined tables over them."""

    def __init__(self, spark: Any, folder: Path, rng: random.Random, names: list[str]) -> None:
        self.spark = spark
        self.rng = rng
        self.names = names
        source = TopicSource(name="orders", bootstrap_servers="nowhere", subscribe="orders")
        self.pipeline = Pipeline(
            name="shop",
            lake=str(folder / "lake"),
            sources=[source],
            staging=[Staging(name="orders", source="orders", key=["id"])],
            trusted=[Trusted(name="orders", staging="orders"), Trusted(name="customers", staging="orders")],
            refined=[Refined(name=name, sql=TABLES[name], schedule="0 0 * * *") for name in names],
        )
        self.lake = self.pipeline.lake_location
        self._next = 0
        self.add_orders(6)
        rows = [(name, rng.choice(LANDS)) for name in ("ann", "ben")]
        self._append(CUSTOMERS, rows, "customer STRING, land STRING")

    def _append(self, table: TableName, rows: list[tuple[Any, ...]], ddl: str) -> None:
        frame = self.spark.createDataFrame(rows, ddl).coalesce(1)
        commits.append(frame, self.lake.path(table), None, properties=commits.CHANGES)

    def add_orders(self, count: int) -> None:
        rows = []
        for _ in range(count):
            self._next += 1
            rows.append(
                (self._next, self.rng.choice(SHOPS), self.rng.choice(CUSTOMERS_OF), self.rng.randint(0, 4))
            )
        self._append(ORDERS, rows, "id INT, shop STRING, customer STRING, amount BIGINT")

    def change(self) -> str:
        """One random change of one of the tables."""
        orders, customers = self.lake.identifier(ORDERS), self.lake.identifier(CUSTOMERS)
        some = self.rng.sample(range(1, self._next + 1), 2)
        who = self.rng.choice(CUSTOMERS_OF[:3])
        kind = self.rng.choice(["add", "add", "update", "delete", "customer", "land", "lost"])
        if kind == "add":
            self.add_orders(self.rng.randint(1, 3))
        elif kind == "update":
            shop = self.rng.choice(SHOPS[:2])
            self.spark.sql(
                f"UPDATE {orders} SET shop = '{shop}', amount = amount + 1, customer = '{who}' "
                f"WHERE id IN ({some[0]}, {some[1]})"
            )
        elif kind == "delete":
            self.spark.sql(f"DELETE FROM {orders} WHERE id = {some[0]}")
        elif kind == "customer":
            self._append(CUSTOMERS, [(who, self.rng.choice(LANDS))], "customer STRING, land STRING")
        elif kind == "land":
            self.spark.sql(f"UPDATE {customers} SET land = 'fr' WHERE customer = '{who}'")
        else:
            self.spark.sql(f"DELETE FROM {customers} WHERE customer = '{who}'")
        return kind

    def refresh(self) -> list[str]:
        return [each.table.name for each in zone.refresh(self.spark, self.pipeline)]

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        return Counter(map(tuple, self.lake.read(self.spark, TableName.parse(f"refined.{name}")).collect()))

    def wanted(self, name: str) -> Counter[tuple[Any, ...]]:
        for table in (ORDERS, CUSTOMERS):
            self.lake.read(self.spark, table).createOrReplaceTempView(table.name)
        return Counter(map(tuple, self.spark.sql(TABLES[name]).collect()))

    def check(self, told: object) -> None:
        for name in self.names:
            assert self.rows(name) == self.wanted(name), (name, told)


@pytest.mark.parametrize("name", TABLES)
def test_the_sql_decides_how_a_table_is_updated(name: str, tmp_path: Path) -> None:
    refined = Refined(name=name, sql=TABLES[name], schedule="0 0 * * *")
    pipeline = Pipeline(
        name="shop",
        lake=str(tmp_path),
        sources=[TopicSource(name="orders", bootstrap_servers="nowhere", subscribe="orders")],
        staging=[Staging(name="orders", source="orders")],
        trusted=[Trusted(name="orders", staging="orders"), Trusted(name="customers", staging="orders")],
        refined=[refined],
    )
    update = update_of(pipeline, refined)
    assert update.mode is MODES[name], update
    assert bool(update.merged_by) is (name in ("sums", "hidden", "aliased"))
    assert ("because" in update.text) is (name == "strange")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT * FROM orders UNION ALL SELECT * FROM orders", "UNION"),
        ("SELECT shop FROM orders LIMIT 3", "LIMIT"),
        ("SELECT shop, now() AS at FROM orders JOIN customers USING (customer)", "each time"),
        ("SELECT a.shop FROM orders a JOIN orders b ON a.id = b.id", "names orders several times"),
        ("SELECT o.shop FROM orders o FULL JOIN customers c ON o.c = c.c", "FULL JOIN gives rows"),
        ("SELECT o.shop FROM orders o JOIN customers c ON customer = c.customer", "of which table"),
        ("SELECT o.shop FROM orders o JOIN customers c", "without a condition"),
        (
            "SELECT date(at) AS at, count(*) AS n FROM orders JOIN customers USING (customer) GROUP BY at",
            "GROUP BY at means the column",
        ),
        ("WITH x AS (SELECT 1 AS a) SELECT shop FROM orders", "WITH"),
        ("SELECT shop FROM orders WHERE c IN (SELECT customer FROM customers)", "inside of the query"),
        (
            "SELECT count(*) AS n FROM orders o JOIN customers c USING (customer) GROUP BY shop",
            "does not select",
        ),
    ],
)
def test_a_table_that_is_computed_as_a_whole_says_why(sql: str, reason: str, tmp_path: Path) -> None:
    refined = Refined(name="r", sql=sql)
    pipeline = Pipeline(
        name="shop",
        lake=str(tmp_path),
        sources=[TopicSource(name="orders", bootstrap_servers="nowhere", subscribe="orders")],
        staging=[Staging(name="orders", source="orders")],
        trusted=[Trusted(name="orders", staging="orders"), Trusted(name="customers", staging="orders")],
        refined=[refined],
    )
    update = update_of(pipeline, refined)
    assert update.mode is UpdateMode.WHOLE and reason in update.text, update.text


def test_rows_and_groups_take_in_each_change_once(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a column `customer` of the result, `GROUP BY customer` may mean the column of the input."""
    caplog.set_level("INFO")
    shop = Shop(spark, tmp_path, random.Random(5), ["joined", "sums", "hidden"])
    shop.refresh()
    for _ in range(2):
        shop.add_orders(4)
        spark.sql(f"DELETE FROM {shop.lake.identifier(ORDERS)} WHERE id = 3")
        assert shop.refresh() == shop.names
        shop.check("added")
    assert shop.refresh() == []
    assert "refined.hidden is computed as a whole each time, because GROUP BY customer" in caplog.text
    assert "refined.sums is computed as a whole" not in caplog.text


@pytest.mark.long
def test_a_change_in_any_input_reaches_rows_and_groups(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, random.Random(1), ["joined", "lands"])
    shop.refresh()
    shop.add_orders(2)
    customers = shop.lake.identifier(CUSTOMERS)
    spark.sql(f"UPDATE {customers} SET land = 'fr' WHERE customer = 'ann'")
    spark.sql(f"DELETE FROM {shop.lake.identifier(ORDERS)} WHERE id = 3")
    assert shop.refresh() == ["joined", "lands"]
    shop.check("both tables changed")
    assert shop.refresh() == []  # nothing changed, nothing is done


@pytest.mark.long
def test_increments_give_what_the_sql_gives_now(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(12)
    shop = Shop(spark, tmp_path, rng, list(TABLES))
    shop.refresh()
    shop.check("first")
    for _ in range(12):
        told = [shop.change() for _ in range(rng.randint(1, 4))]
        shop.refresh()
        shop.check(told)
    assert shop.refresh() == []


class Killed(Exception):
    pass


@pytest.mark.long
def test_a_process_that_is_killed_before_or_after_a_commit_repeats_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(spark, tmp_path, random.Random(3), ["joined", "sums", "lands"])
    shop.refresh()
    commit = zone.Incremental.commit

    def before(self: Any, target: Any) -> None:
        raise Killed

    def after(self: Any, target: Any) -> None:
        commit(self, target)
        raise Killed

    for dies in (before, after):
        shop.add_orders(3)
        shop.change()
        for name in shop.names:
            with monkeypatch.context() as patch, pytest.raises(Killed):
                patch.setattr(zone.Incremental, "commit", dies)
                zone.refresh(spark, shop.pipeline, [name])
        shop.refresh()
        shop.check(dies.__name__)
        for name in shop.names:
            table = TableName.parse(f"refined.{name}")
            progress = newest_progress(spark, shop.lake, table)
            assert progress is not None
            assert progress.reads["orders"] == shop.lake.version(spark, ORDERS)


@pytest.mark.long
def test_changes_that_cannot_be_read_any_more_make_the_table_anew(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop(spark, tmp_path, random.Random(4), ["sums"])
    shop.refresh()
    shop.add_orders(2)
    name = shop.lake.identifier(ORDERS)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    shop.refresh()
    assert "refined.sums is computed as a whole" in caplog.text
    shop.check("no feed")

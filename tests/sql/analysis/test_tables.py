"""Tables: aggregations, HAVING, tombstones, WHERE on tables, groups of tables."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.testing import SqlTestDriver

SALES = (
    "CREATE STREAM sales (shop VARCHAR KEY, item VARCHAR, n INT) WITH (KAFKA_TOPIC='sales', PARTITIONS=1);"
)
USERS = (
    "CREATE TABLE users (id INT PRIMARY KEY, city VARCHAR, age INT) WITH (KAFKA_TOPIC='users', PARTITIONS=1);"
)


def test_every_row_updates_its_group() -> None:
    driver = SqlTestDriver(
        SALES,
        "CREATE TABLE t AS SELECT item, COUNT(*) AS c, SUM(n) AS s, MAX(n) + 1 AS m FROM sales"
        " GROUP BY item;",
    )
    for item, n in (("a", 1), ("a", None), ("b", 5), ("a", 2)):
        driver.pipe("SALES", {"SHOP": "x", "ITEM": item, "N": n})
    assert driver.values("T") == [
        {"ITEM": "a", "C": 1, "S": 1, "M": 2},
        {"ITEM": "a", "C": 2, "S": 1, "M": 2},
        {"ITEM": "b", "C": 1, "S": 5, "M": 6},
        {"ITEM": "a", "C": 3, "S": 3, "M": 3},
    ]


def test_a_null_among_the_groups_drops_the_row_and_is_told() -> None:
    driver = SqlTestDriver(
        SALES,
        "CREATE TABLE t WITH (KEY_FORMAT='JSON') AS SELECT item, shop, COUNT(*) AS c FROM sales"
        " GROUP BY item, shop;",
    )
    driver.pipe("SALES", {"SHOP": "x", "ITEM": None})
    driver.pipe("SALES", {"SHOP": "x", "ITEM": "a"})
    assert driver.table("T") == {("a", "x"): {"C": 1}}
    assert len(driver.problems) == 1


def test_having_and_where_make_tombstones_of_rows_that_fall_out_only() -> None:
    driver = SqlTestDriver(
        USERS,
        "CREATE TABLE adults AS SELECT id, city FROM users WHERE age >= 18;",
        "CREATE TABLE cities AS SELECT city, COUNT(*) AS n FROM users GROUP BY city HAVING COUNT(*) > 1;",
    )
    for number, city, age in ((1, "bern", 20), (2, "bern", 5), (1, "bern", 3), (2, "basel", 5)):
        driver.pipe("USERS", {"ID": number, "CITY": city, "AGE": age})
    assert [(row.key, row.value) for row in driver.rows("ADULTS")] == [
        ({"ID": 1}, {"CITY": "bern"}),
        ({"ID": 1}, None),
    ]
    assert driver.values("CITIES")[-1] is None
    assert driver.table("CITIES") == {}


def test_counts_of_a_table_go_down_and_groups_stay_with_zero() -> None:
    driver = SqlTestDriver(
        USERS, "CREATE TABLE cities AS SELECT city, COUNT(*) AS n, SUM(age) AS s FROM users GROUP BY city;"
    )
    driver.pipe("USERS", {"ID": 1, "CITY": "bern", "AGE": 20})
    driver.pipe("USERS", {"ID": 1, "CITY": "basel", "AGE": 21})
    assert driver.table("CITIES") == {("bern",): {"N": 0, "S": 0}, ("basel",): {"N": 1, "S": 21}}
    driver.pipe("USERS", {"ID": 1}, tombstone=True)
    assert driver.table("CITIES")[("basel",)] == {"N": 0, "S": 0}


def test_functions_that_cannot_undo_are_refused_on_tables() -> None:
    driver = SqlTestDriver(USERS)
    with pytest.raises(SqlError, match=r"function\(s\) \(MAX\) cannot be applied to a table source"):
        driver.prepare("CREATE TABLE t AS SELECT city, MAX(age) AS m FROM users GROUP BY city;")


def test_group_by_the_key_needs_no_repartition() -> None:
    driver = SqlTestDriver(SALES, "CREATE TABLE t AS SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop;")
    assert "repartition" not in driver.explain("CTAS_T_1")
    driver.run("CREATE TABLE u AS SELECT item, COUNT(*) AS n FROM sales GROUP BY item;")
    assert "repartition" in driver.explain("CTAS_U_2")


def test_tables_of_tables_carry_deletes_through() -> None:
    driver = SqlTestDriver(USERS, "CREATE TABLE t AS SELECT id AS number, UCASE(city) AS city FROM users;")
    driver.pipe("USERS", {"ID": 1, "CITY": "bern"})
    driver.pipe("USERS", {"ID": 1}, tombstone=True)
    assert [(row.key, row.value) for row in driver.rows("T")] == [
        ({"NUMBER": 1}, {"CITY": "BERN"}),
        ({"NUMBER": 1}, None),
    ]


def test_group_expressions_in_select_having_and_aggregates_of_expressions() -> None:
    driver = SqlTestDriver(
        SALES,
        "CREATE TABLE t AS SELECT UCASE(item) AS item, LEN(UCASE(item)) + SUM(n * 2) AS x FROM sales"
        " GROUP BY UCASE(item) HAVING SUM(n * 2) > 2 AND UCASE(item) <> 'ZZ';",
    )
    for item, n in (("a", 1), ("A", 3), ("zz", 9)):
        driver.pipe("SALES", {"ITEM": item, "N": n})
    assert driver.table("T") == {("A",): {"X": 9}}


def test_an_aggregate_that_raises_leaves_its_state_and_is_told() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM s (k INT KEY, v DECIMAL(2, 1)) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE TABLE t AS SELECT k, SUM(v) AS s, COUNT(*) AS n FROM s GROUP BY k;"
    )
    for v in ("9.0", "2.0", "0.5"):
        driver.run(f"INSERT INTO s VALUES (1, {v});")
    [row] = driver.table("T").values()
    assert (str(row["S"]), row["N"]) == ("9.5", 3)
    assert len(driver.problems) == 1

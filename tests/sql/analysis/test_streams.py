"""Queries on streams without groups: WHERE, projections, keys, table functions, headers, times."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from barnabas.plans.description import describe
from barnabas.sql.analysis.work import QueryWork
from barnabas.sql.testing import SqlTestDriver

ORDERS = """CREATE STREAM orders (id INT KEY, item VARCHAR, qty INT, tags ARRAY<VARCHAR>)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);"""


def driver_of(*statements: str, **more: Any) -> SqlTestDriver:
    return SqlTestDriver(ORDERS, *statements, **more)


def order(
    driver: SqlTestDriver, number: int | None, item: str, qty: int | None, *tags: str, at: int = 0
) -> None:
    driver.pipe("ORDERS", {"ID": number, "ITEM": item, "QTY": qty, "TAGS": list(tags)})


def test_where_keeps_rows_that_are_true_and_errors_drop_them() -> None:
    driver = driver_of("CREATE STREAM big AS SELECT id, item FROM orders WHERE 10 / qty < 3;")
    for number, qty in enumerate((4, 2, 0, None)):
        order(driver, number, "a", qty)
    assert driver.values("BIG") == [{"ID": 0, "ITEM": "a"}]
    [problem] = driver.problems
    assert problem.cause == "EvaluationError: / by zero"
    assert (problem.topic, problem.offset) == ("orders", 2)


def test_an_error_in_a_column_is_null_in_that_column() -> None:
    driver = driver_of("CREATE STREAM x AS SELECT id, 6 / qty AS share, item FROM orders;")
    order(driver, 1, "a", 0)
    assert driver.values("X") == [{"ID": 1, "SHARE": None, "ITEM": "a"}]
    [problem] = driver.problems
    assert problem.message == "Error computing expression 6 / QTY for column SHARE with index 0"
    assert problem.logger == "CSAS_X_1.Project"


def test_unnamed_columns_and_stars() -> None:
    driver = driver_of("CREATE STREAM x AS SELECT *, qty + 1, UCASE(item), qty * 2 AS two FROM orders;")
    order(driver, 1, "a", 3)
    assert driver.values("X") == [
        {"ID": 1, "ITEM": "a", "QTY": 3, "TAGS": [], "KSQL_COL_0": 4, "KSQL_COL_1": "A", "TWO": 6}
    ]
    assert str(driver.metastore.source("X").schema).startswith(
        "`ID` INTEGER KEY, `ITEM` STRING, `QTY` INTEGER"
    )


def test_fields_of_structs_take_their_names() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM s (a STRUCT<x INT, y STRUCT<z VARCHAR>>) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM t AS SELECT a->*, a->y->z, a->x FROM s;"
    )
    driver.pipe("S", {"A": {"X": 1, "Y": {"Z": "q"}}})
    assert driver.values("T") == [{"X": 1, "Y": {"Z": "q"}, "Z": "q", "X_1": 1}]


def test_partition_by_makes_a_new_key_and_null_keeps_the_row() -> None:
    driver = driver_of(
        "CREATE STREAM by_item AS SELECT item, id, qty FROM orders PARTITION BY item;",
        "CREATE STREAM by_two WITH (KEY_FORMAT='JSON') AS SELECT item, qty, id FROM orders"
        " PARTITION BY item, qty;",
        "CREATE STREAM by_length AS SELECT LEN(item) AS n, AS_VALUE(item) AS item FROM orders"
        " PARTITION BY LEN(item);",
        "CREATE STREAM no_key AS SELECT item FROM orders PARTITION BY NULL;",
    )
    order(driver, 1, "abc", 3)
    driver.pipe("ORDERS", {"ID": 2})
    assert [(row.key, row.value) for row in driver.rows("BY_ITEM")] == [
        ({"ITEM": "abc"}, {"ID": 1, "QTY": 3}),
        (None, {"ID": 2, "QTY": None}),
    ]
    assert [row.key for row in driver.rows("BY_TWO")] == [
        {"ITEM": "abc", "QTY": 3},
        {"ITEM": None, "QTY": None},
    ]
    assert driver.rows("BY_LENGTH")[0].key == {"N": 3}
    assert driver.rows("NO_KEY")[0].key is None
    assert driver.metastore.source("NO_KEY").key_format.name == "NONE"


def test_table_functions_are_zipped_and_fill_with_null() -> None:
    driver = driver_of(
        "CREATE STREAM x AS SELECT id, EXPLODE(tags) AS tag, EXPLODE(ARRAY[1, 2]) AS n, qty FROM orders;",
        "CREATE STREAM y AS SELECT id, LEN(EXPLODE(tags)) AS n FROM orders;",
    )
    order(driver, 1, "a", 3, "p", "q", "r")
    assert driver.values("X") == [
        {"ID": 1, "TAG": "p", "N": 1, "QTY": 3},
        {"ID": 1, "TAG": "q", "N": 2, "QTY": 3},
        {"ID": 1, "TAG": "r", "N": None, "QTY": 3},
    ]
    assert [row["N"] for row in driver.values("Y") if row] == [1, 1, 1]
    driver.pipe("ORDERS", {"ID": 2})
    assert [row["TAG"] for row in driver.values("X") if row] == [None, None]


def test_pseudo_columns_and_headers() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM s (v INT, h ARRAY<STRUCT<key STRING, value BYTES>> HEADERS)"
        " WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM one (v INT, h BYTES HEADER('a')) WITH (KAFKA_TOPIC='s');"
        "CREATE STREAM x AS SELECT v, ROWTIME AS t, ROWOFFSET AS o, ROWPARTITION AS p, h FROM s"
        " WHERE ROWTIME > '1970-01-01T00:00:01';"
        "CREATE STREAM y AS SELECT h FROM one;"
    )
    driver.pipe("S", {"V": 1}, timestamp=1000, headers=(("a", b"1"),))
    driver.pipe("S", {"V": 2}, timestamp=2000, headers=(("a", b"1"), ("a", b"2")))
    headers = [{"KEY": "a", "VALUE": b"1"}, {"KEY": "a", "VALUE": b"2"}]
    [row] = driver.rows("X")
    assert row.value == {"V": 2, "T": 2000, "O": 1, "P": 0, "H": headers}
    assert row.headers == (("a", b"1"), ("a", b"2"))
    assert driver.values("Y") == [{"H": b"1"}, {"H": b"2"}]


def test_time_comes_from_a_column_and_goes_to_one() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM s (at_ VARCHAR, t TIMESTAMP) WITH (KAFKA_TOPIC='s', PARTITIONS=1, TIMESTAMP='at_',"
        " TIMESTAMP_FORMAT='yyyy-MM-dd HH:mm');"
        "CREATE STREAM x WITH (TIMESTAMP='t') AS SELECT t, ROWTIME AS was FROM s;"
    )
    driver.run("INSERT INTO s VALUES ('1970-01-01 00:01', '1970-01-02T00:00:00');")
    driver.pipe("S", {"AT_": "nonsense"})
    [row] = driver.rows("X")
    assert (row.timestamp, row.value["WAS"]) == (86_400_000, 60_000)  # type: ignore[index]
    assert len(driver.problems) == 1


def test_null_values_of_a_stream_are_no_rows_and_null_keys_are() -> None:
    driver = driver_of("CREATE STREAM x AS SELECT id, item FROM orders;")
    driver.pipe("ORDERS", {"ID": 1}, tombstone=True)
    order(driver, None, "a", 1)
    assert [(row.key, row.value) for row in driver.rows("X")] == [(None, {"ITEM": "a"})]


def test_several_writers_into_one_stream() -> None:
    driver = driver_of(
        "CREATE STREAM sink (id INT KEY, item VARCHAR) WITH (KAFKA_TOPIC='sink', PARTITIONS=1);",
        "INSERT INTO sink SELECT id, item FROM orders WHERE qty > 5;",
        "INSERT INTO sink WITH (QUERY_ID='small') SELECT id, UCASE(item) AS item FROM orders WHERE qty < 3;",
    )
    for qty in (1, 4, 9):
        order(driver, qty, "a", qty)
    assert driver.values("SINK") == [{"ID": 1, "ITEM": "A"}, {"ID": 9, "ITEM": "a"}]
    assert list(driver.metastore.queries) == ["INSERTQUERY_2", "SMALL"]


def test_push_queries_have_limits_and_reads_of_streams_end() -> None:
    driver = driver_of()
    order(driver, 1, "a", 1)
    push = driver.push("SELECT item, qty * 2 FROM orders EMIT CHANGES LIMIT 2;")
    order(driver, 2, "b", 2)
    order(driver, 3, "c", 3)
    assert list(push) == [["a", 2], ["b", 4]] and push.end
    assert str(push.schema) == "`ITEM` STRING, `KSQL_COL_0` INTEGER"
    read = driver.push("SELECT id FROM orders WHERE qty > 1;")
    order(driver, 4, "d", 4)
    assert list(read) == [[2], [3]]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t AS SELECT item, SUM(qty) AS n, MAX(LEN(item)) AS l FROM orders"
        " WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS) WHERE item LIKE 'a%' GROUP BY item;",
        "CREATE STREAM x WITH (TIMESTAMP='t') AS SELECT item, EXPLODE(tags) AS tag, ROWTIME AS t FROM orders"
        " PARTITION BY item;",
        "CREATE STREAM x AS SELECT o.id AS id, v, TRANSFORM(tags, x => UCASE(x)) AS tags FROM orders o"
        " LEFT JOIN other r WITHIN 1 DAY ON o.id = r.id;",
        "CREATE TABLE t AS SELECT l.id AS id, v FROM l LEFT JOIN r ON l.f = r.id;",
    ],
)
def test_a_plan_survives_the_way_to_an_executor(text: str) -> None:
    driver = driver_of(
        "CREATE STREAM other (id INT KEY, v INT) WITH (KAFKA_TOPIC='other', PARTITIONS=1);"
        "CREATE TABLE l (id INT PRIMARY KEY, f INT) WITH (KAFKA_TOPIC='l', PARTITIONS=1);"
        "CREATE TABLE r (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);"
    )
    work = driver.prepare(text).work
    assert isinstance(work, QueryWork) and work.plan is not None
    copy = pickle.loads(pickle.dumps(work))
    assert copy.topology == describe(copy.plan) == describe(work.plan)


def test_windowed_tables_are_read_as_tables_again() -> None:
    driver = driver_of(
        "CREATE TABLE w AS SELECT item, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 10 SECONDS)"
        " GROUP BY item;"
        "CREATE TABLE again AS SELECT item, n * 10 AS n FROM w WHERE n > 1;"
    )
    push = driver.push("SELECT item, WINDOWSTART, n FROM w WHERE n < 2 EMIT CHANGES;")
    for second in (1, 2, 11):
        driver.pipe("ORDERS", {"ID": 1, "ITEM": "a"}, timestamp=second * 1000)
    assert driver.table("AGAIN") == {(("a",), 0, 10_000): {"N": 20}}
    assert [(row.values, row.is_tombstone) for row in push.rows] == [
        (["a", 0, 1], False),
        (["a", 0, None], True),
        (["a", 10_000, 1], False),
    ]


def test_explain_has_a_plan_and_no_effects() -> None:
    prepared = driver_of().prepare("EXPLAIN CREATE STREAM x AS SELECT id, item FROM orders WHERE qty > 1;")
    assert (prepared.changes, prepared.topics, prepared.starts) == ((), (), None)
    assert [line.split("|")[0].strip() for line in prepared.work.execution_plan.splitlines()] == [
        "> [ PROJECT ]",
        "> [ FILTER ]",
        "> [ SOURCE ]",
    ]
    assert prepared.work.topology.startswith("Topologies:")

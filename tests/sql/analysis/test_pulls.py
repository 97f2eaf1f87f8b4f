"""Pull queries: what is looked up, and that a lookup gives what a scan gives."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.sql.analysis.work import Bound, PullRead, Range
from barnabas.sql.errors import SqlError
from barnabas.sql.testing import SqlTestDriver

STATEMENTS = """
CREATE STREAM s (k VARCHAR KEY, g INT, n INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE plain AS SELECT k, SUM(n) AS n FROM s GROUP BY k;
CREATE TABLE pairs WITH (KEY_FORMAT='JSON') AS SELECT k, g, COUNT(*) AS n FROM s GROUP BY k, g;
CREATE TABLE windowed AS SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k;
"""


@pytest.fixture(scope="module")
def driver() -> SqlTestDriver:
    found = SqlTestDriver(STATEMENTS)
    for number in range(40):
        found.pipe("S", {"K": "abcd"[number % 4], "G": number % 3, "N": number}, timestamp=number * 1000)
    return found


def read_of(driver: SqlTestDriver, text: str) -> PullRead:
    read = driver.prepare(text).work.pull
    assert isinstance(read, PullRead)
    return read


@pytest.mark.parametrize(
    ("condition", "keys", "key_range"),
    [
        ("k = 'a'", (("a",),), None),
        ("'a' = k AND n > 3", (("a",),), None),
        ("k IN ('a', 'b', 'a')", (("a",), ("b",)), None),
        ("k = 'a' OR k = 'c'", (("a",), ("c",)), None),
        ("k IN ('a', 'b') AND k = 'b'", (("b",),), None),
        ("k = UCASE('a')", (("A",),), None),
        ("k >= 'b' AND k < 'd'", None, Range(Bound("b", True), Bound("d", False))),
        ("k BETWEEN 'b' AND 'c'", None, Range(Bound("b", True), Bound("c", True))),
        ("n > 3", None, None),
        ("k = 'a' OR n > 3", None, None),
        ("k LIKE 'a%'", None, None),
        ("NOT (k = 'a')", None, None),
    ],
)
def test_lookups_of_a_condition(driver: SqlTestDriver, condition: str, keys: Any, key_range: Any) -> None:
    read = read_of(driver, f"SELECT * FROM plain WHERE {condition};")
    assert (read.keys, read.key_range) == (keys, key_range)
    assert read.is_scan is (keys is None and key_range is None)
    everything = driver.pull("SELECT * FROM plain;")
    found = driver.pull(f"SELECT * FROM plain WHERE {condition};")
    assert all(row in everything for row in found)
    if "OR n" in condition:
        assert len(found) == 4


def test_several_key_columns_are_looked_up_together(driver: SqlTestDriver) -> None:
    assert read_of(driver, "SELECT * FROM pairs WHERE g IN (0, 1) AND k = 'a';").keys == (("a", 0), ("a", 1))
    assert read_of(driver, "SELECT * FROM pairs WHERE k = 'a';").keys is None
    assert len(driver.pull("SELECT * FROM pairs WHERE k = 'a';")) == 3


def test_bounds_of_windows_take_texts_and_numbers(driver: SqlTestDriver) -> None:
    read = read_of(
        driver,
        "SELECT * FROM windowed WHERE k = 'a' AND WINDOWSTART >= '1970-01-01T00:00:10'"
        " AND WINDOWEND < 40000;",
    )
    assert read.window_start == Range(Bound(10_000, True), None)
    assert read.window_end == Range(None, Bound(40_000, False))
    found = driver.pull("SELECT * FROM windowed WHERE k = 'a' AND WINDOWSTART BETWEEN 10000 AND 20000;")
    assert found == [["a", 10_000, 20_000, 2], ["a", 20_000, 30_000, 3]]


def test_the_schema_marks_keys_and_windows(driver: SqlTestDriver) -> None:
    prepared = driver.prepare("SELECT * FROM windowed WHERE k = 'a' LIMIT 1;")
    windows = "`WINDOWSTART` BIGINT KEY, `WINDOWEND` BIGINT KEY"
    assert str(prepared.schema) == f"`K` STRING KEY, {windows}, `N` BIGINT"
    assert prepared.limit == 1
    assert driver.pull("SELECT n + 1, ROWTIME FROM windowed WHERE k = 'b' LIMIT 1;") == [[4, 9000]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT COUNT(*) FROM plain;", "Pull queries don't support COUNT"),
        ("SELECT k FROM plain GROUP BY k;", "Pull queries don't support GROUP BY"),
        ("SELECT * FROM plain p JOIN pairs q ON p.k = q.k;", "Pull queries don't support JOIN"),
        ("SELECT ROWOFFSET FROM plain;", "column 'ROWOFFSET' cannot be resolved"),
        ("SELECT q FROM plain;", "column 'Q' cannot be resolved"),
        ("SELECT * FROM nowhere;", "NOWHERE does not exist."),
        ("SELECT COUNT(*) FROM s GROUP BY k;", "Pull queries on streams don't support"),
    ],
)
def test_pull_queries_that_cannot_be(driver: SqlTestDriver, text: str, message: str) -> None:
    with pytest.raises(SqlError) as error:
        driver.prepare(text)
    assert message in error.value.message


def test_a_table_over_a_topic_is_read_where_it_is_a_source_table() -> None:
    plain = "CREATE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
    driver = SqlTestDriver(plain, "CREATE SOURCE TABLE u (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t');")
    driver.pipe("T", {"K": 1, "V": 2})
    assert driver.pull("SELECT v FROM u WHERE k = 1;") == [[2]]
    with pytest.raises(SqlError, match=r"The `T` table isn't queryable"):
        driver.pull("SELECT v FROM t WHERE k = 1;")
    off = SqlTestDriver(STATEMENTS, settings={"ksql.query.pull.table.scan.enabled": "false"})
    with pytest.raises(SqlError, match="scans are disabled"):
        off.prepare("SELECT * FROM plain WHERE n > 1;")

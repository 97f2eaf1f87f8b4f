"""Joins: kinds, windows, eager and closed results, keys of results, foreign keys, several in a row."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.testing import SqlTestDriver

STREAMS = """
CREATE STREAM l (id INT KEY, a VARCHAR, x INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM r (id INT KEY, b VARCHAR, x INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR, other INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE u (id INT PRIMARY KEY, d VARCHAR) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
"""


def joined(kind: str, rest: str = "WITHIN 10 SECONDS") -> SqlTestDriver:
    return SqlTestDriver(
        STREAMS, f"CREATE STREAM j AS SELECT l.id AS id, a, b FROM l {kind} JOIN r {rest} ON l.id = r.id;"
    )


def feed(driver: SqlTestDriver, *records: tuple[str, int, int]) -> list[Any]:
    """Records as (source, key, second); gives pairs (a, b) in order."""
    for source, key, second in records:
        column = "A" if source == "L" else "B"
        driver.pipe(source, {"ID": key, column: f"{source}{second}"}, timestamp=second * 1000)
    return [(row["A"], row["B"]) for row in driver.values("J") if row]


def test_inner_joins_find_both_ends_of_the_window() -> None:
    records = (("L", 1, 20), ("R", 1, 10), ("R", 1, 30), ("R", 1, 31), ("R", 2, 20))
    assert feed(joined("INNER"), *records) == [("L20", "R10"), ("L20", "R30")]
    two = joined("INNER", "WITHIN (10 SECONDS, 0 SECONDS)")
    assert feed(two, *records) == [("L20", "R10")]


def test_left_joins_without_grace_are_eager() -> None:
    assert feed(joined("LEFT"), ("L", 1, 20), ("R", 1, 21), ("L", 2, 22)) == [
        ("L20", None),
        ("L20", "R21"),
        ("L22", None),
    ]


def test_left_joins_with_grace_wait_for_the_close() -> None:
    driver = joined("LEFT", "WITHIN 10 SECONDS GRACE PERIOD 5 SECONDS")
    assert feed(driver, ("L", 1, 20), ("L", 2, 21), ("R", 2, 22)) == [("L21", "R22")]
    assert feed(driver, ("L", 3, 60)) == [("L20", None)]


def test_right_and_full_joins() -> None:
    right = joined("RIGHT")
    assert feed(right, ("R", 1, 20), ("L", 1, 21), ("L", 2, 22)) == [(None, "R20"), ("L21", "R20")]
    driver = SqlTestDriver(
        STREAMS,
        "CREATE STREAM j AS SELECT ROWKEY, l.id, r.id, a, b FROM l FULL JOIN r WITHIN 1 MINUTE"
        " ON l.id = r.id;",
    )
    for source, key, column in (("L", 1, "A"), ("R", 1, "B"), ("R", 2, "B")):
        driver.pipe(source, {"ID": key, column: source})
    assert [(row.key, row.value) for row in driver.rows("J")] == [
        ({"ROWKEY": 1}, {"L_ID": 1, "R_ID": None, "A": "L", "B": None}),
        ({"ROWKEY": 1}, {"L_ID": 1, "R_ID": 1, "A": "L", "B": "R"}),
        ({"ROWKEY": 2}, {"L_ID": None, "R_ID": 2, "A": None, "B": "R"}),
    ]


def test_a_star_of_a_join_has_the_sources_in_its_names() -> None:
    driver = SqlTestDriver(STREAMS, "CREATE STREAM j AS SELECT * FROM l JOIN r WITHIN 1 DAY ON l.id = r.id;")
    driver.pipe("L", {"ID": 1, "A": "a", "X": 1})
    driver.pipe("R", {"ID": 1, "B": "b", "X": 2})
    assert driver.values("J") == [{"L_ID": 1, "L_A": "a", "L_X": 1, "R_ID": 1, "R_B": "b", "R_X": 2}]
    [key] = driver.metastore.source("J").schema.key
    assert key.name == "L_ID"


def test_a_join_by_a_value_or_an_expression_moves_rows() -> None:
    driver = SqlTestDriver(
        STREAMS,
        "CREATE STREAM j AS SELECT r.id AS id, a, b FROM l JOIN r WITHIN 1 DAY ON l.x = r.id;"
        "CREATE STREAM k AS SELECT ROWKEY, a, b FROM l JOIN r WITHIN 1 DAY ON l.x + 1 = r.id + 1;",
    )
    driver.pipe("L", {"ID": 7, "A": "a", "X": 1})
    driver.pipe("R", {"ID": 1, "B": "b"})
    assert driver.values("J") == [{"ID": 1, "A": "a", "B": "b"}]
    assert driver.values("K") == [{"ROWKEY": 2, "A": "a", "B": "b"}]


def test_rows_that_move_keep_their_place_in_left_and_full_joins_where_they_have_no_key() -> None:
    driver = SqlTestDriver(
        STREAMS,
        TABLES,
        "CREATE STREAM j AS SELECT t.id AS id, a, c FROM l LEFT JOIN t ON l.x = t.id;"
        "CREATE STREAM i AS SELECT t.id AS id, a, c FROM l JOIN t ON l.x = t.id;"
        "CREATE STREAM k AS SELECT l.x AS x, a, b FROM l LEFT JOIN r WITHIN 1 DAY ON l.x = r.x;"
        "CREATE STREAM f AS SELECT ROWKEY, a, b FROM l FULL JOIN r WITHIN 1 DAY ON l.x = r.x;",
    )
    driver.pipe("L", {"ID": 7, "A": "a"})
    driver.pipe("R", {"ID": 8, "B": "b"})
    assert [(row.key, row.value) for row in driver.rows("J")] == [(None, {"A": "a", "C": None})]
    assert driver.rows("I") == []
    assert [(row.key, row.value) for row in driver.rows("K")] == [(None, {"A": "a", "B": None})]
    assert [(row.key, row.value) for row in driver.rows("F")] == [
        (None, {"A": "a", "B": None}),
        (None, {"A": None, "B": "b"}),
    ]


@pytest.mark.parametrize("forms", [("KAFKA", "JSON"), ("JSON", "KAFKA"), ("DELIMITED", "JSON")])
def test_tables_whose_keys_have_different_formats_join(forms: tuple[str, str]) -> None:
    one, two = forms
    rest = "VALUE_FORMAT='JSON', PARTITIONS"
    driver = SqlTestDriver(
        f"CREATE TABLE t (id INT PRIMARY KEY, c STRING) WITH (KAFKA_TOPIC='t', KEY_FORMAT='{one}', {rest}=1);"
        f"CREATE TABLE u (id INT PRIMARY KEY, d STRING) WITH (KAFKA_TOPIC='u', KEY_FORMAT='{two}', {rest}=3);"
        "CREATE TABLE i AS SELECT t.id AS id, c, d FROM t JOIN u ON t.id = u.id;"
        "CREATE TABLE f AS SELECT ROWKEY AS id, c, d FROM t FULL JOIN u ON t.id = u.id;"
        "CREATE TABLE r AS SELECT u.id AS id, c, d FROM t RIGHT JOIN u ON t.id = u.id;"
    )
    push = driver.push("SELECT c, d FROM t JOIN u ON t.id = u.id EMIT CHANGES;")
    driver.pipe("T", {"ID": 1, "C": "c1"})
    driver.pipe("U", {"ID": 1, "D": "d1"})
    driver.pipe("U", {"ID": 2, "D": "d2"})
    both, alone = {"C": "c1", "D": "d1"}, {"C": None, "D": "d2"}
    assert driver.table("I") == {(1,): both}
    assert driver.table("F") == driver.table("R") == {(1,): both, (2,): alone}
    assert push.read() == [["c1", "d1"]]
    driver.pipe("U", {"ID": 1}, tombstone=True)
    driver.pipe("U", {"ID": 2}, tombstone=True)
    assert driver.table("I") == driver.table("R") == {}
    assert driver.table("F") == {(1,): {"C": "c1", "D": None}}
    assert driver.metastore.source("I").key_format.name == one
    assert driver.problems == []


def test_streams_look_tables_up_as_they_are_now() -> None:
    driver = SqlTestDriver(
        STREAMS,
        TABLES,
        "CREATE STREAM j AS SELECT l.id AS id, a, c FROM l JOIN t ON l.id = t.id;"
        "CREATE STREAM k AS SELECT l.id AS id, a, UCASE(c) AS c FROM l LEFT JOIN t ON l.id = t.id"
        " WHERE x > 0;",
    )
    driver.pipe("L", {"ID": 1, "A": "early", "X": 1})
    driver.pipe("T", {"ID": 1, "C": "c"})
    driver.pipe("L", {"ID": 1, "A": "late", "X": 1})
    driver.pipe("T", {"ID": 1}, tombstone=True)
    driver.pipe("L", {"ID": 1, "A": "gone", "X": 1})
    assert driver.values("J") == [{"ID": 1, "A": "late", "C": "c"}]
    assert [row["C"] for row in driver.values("K") if row] == [None, "C", None]


def test_tables_join_by_key_and_delete() -> None:
    driver = SqlTestDriver(
        TABLES,
        "CREATE TABLE inner_ AS SELECT t.id AS id, c, d FROM t JOIN u ON t.id = u.id;"
        "CREATE TABLE left_ AS SELECT t.id AS id, c, d FROM t LEFT JOIN u ON t.id = u.id;"
        "CREATE TABLE right_ AS SELECT u.id AS id, c, d FROM t RIGHT JOIN u ON t.id = u.id;"
        "CREATE TABLE full_ AS SELECT ROWKEY AS id, c, d FROM t FULL OUTER JOIN u ON t.id = u.id;",
    )
    driver.pipe("T", {"ID": 1, "C": "c1"})
    driver.pipe("T", {"ID": 2, "C": "c2"})
    driver.pipe("U", {"ID": 2, "D": "d2"})
    driver.pipe("U", {"ID": 3, "D": "d3"})
    one, two, three = (1,), (2,), (3,)
    both = {"C": "c2", "D": "d2"}
    assert driver.table("INNER_") == {two: both}
    assert driver.table("LEFT_") == {one: {"C": "c1", "D": None}, two: both}
    assert driver.table("RIGHT_") == {two: both, three: {"C": None, "D": "d3"}}
    assert driver.table("FULL_") == {one: {"C": "c1", "D": None}, two: both, three: {"C": None, "D": "d3"}}
    driver.pipe("U", {"ID": 2}, tombstone=True)
    assert driver.table("INNER_") == {}
    assert driver.table("LEFT_")[two] == {"C": "c2", "D": None}


def test_tables_join_by_foreign_keys() -> None:
    driver = SqlTestDriver(
        TABLES, "CREATE TABLE j AS SELECT t.id AS id, c, d FROM t LEFT JOIN u ON t.other = u.id;"
    )
    driver.pipe("U", {"ID": 9, "D": "d9"})
    driver.pipe("T", {"ID": 1, "C": "c1", "OTHER": 9})
    driver.pipe("T", {"ID": 2, "C": "c2", "OTHER": 8})
    assert driver.table("J") == {(1,): {"C": "c1", "D": "d9"}, (2,): {"C": "c2", "D": None}}
    driver.pipe("U", {"ID": 8, "D": "d8"})
    driver.pipe("T", {"ID": 1, "C": "c1", "OTHER": 8})
    assert driver.table("J") == {(1,): {"C": "c1", "D": "d8"}, (2,): {"C": "c2", "D": "d8"}}
    driver.pipe("T", {"ID": 2}, tombstone=True)
    assert driver.table("J") == {(1,): {"C": "c1", "D": "d8"}}


def test_several_joins_in_a_row() -> None:
    driver = SqlTestDriver(
        STREAMS,
        TABLES,
        "CREATE STREAM j AS SELECT u.id AS id, a, b, c, d, l.x, ROWTIME AS at_ FROM l"
        " JOIN r WITHIN 1 MINUTE ON l.id = r.id JOIN t ON t.id = l.id LEFT JOIN u ON t.other = u.id"
        " WHERE c = 'c';"
        "CREATE TABLE n AS SELECT l.id AS id, COUNT(*) AS n FROM l JOIN t ON l.id = t.id GROUP BY l.id;",
    )
    driver.pipe("T", {"ID": 1, "C": "c", "OTHER": 5})
    driver.pipe("U", {"ID": 5, "D": "d"})
    driver.pipe("L", {"ID": 1, "A": "a", "X": 3}, timestamp=10)
    driver.pipe("R", {"ID": 1, "B": "b", "X": 4}, timestamp=5)
    [row] = driver.rows("J")
    assert row.value is not None and row.timestamp == 10
    assert row.columns == {"ID": 5, "A": "a", "B": "b", "C": "c", "D": "d", "L_X": 3, "AT_": 10}
    assert driver.table("N") == {(1,): {"N": 1}}


def test_columns_of_tables_in_joins_of_tables_group_again() -> None:
    driver = SqlTestDriver(
        TABLES,
        "CREATE TABLE j AS SELECT d, COUNT(*) AS n FROM t JOIN u ON t.id = u.id GROUP BY d"
        " HAVING COUNT(*) > 0;",
    )
    driver.pipe("T", {"ID": 1, "C": "c"})
    driver.pipe("U", {"ID": 1, "D": "d"})
    driver.pipe("U", {"ID": 1, "D": "e"})
    assert driver.table("J") == {("e",): {"N": 1}}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("l JOIN r ON l.id = r.id", "needs WITHIN"),
        ("l JOIN t WITHIN 1 DAY ON l.id = t.id", "Please remove the WITHIN clause"),
        ("l FULL JOIN t ON l.id = t.id", "FULL JOIN between stream L and table T is not supported"),
        ("l JOIN t ON l.id = t.other", "join on the table's primary key"),
        ("t JOIN l ON t.id = l.id", "put the stream on the left side"),
        ("t FULL JOIN u ON t.other = u.id", "FULL JOIN by a foreign key is not supported"),
        ("t JOIN u ON t.id = u.d", "types don't match. Got T.`ID`{INTEGER} = U.D{STRING}."),
        ("t JOIN u ON t.other + 1 = u.id + 1", "primary key of the right input table"),
        ("l JOIN l AS m WITHIN 1 DAY ON l.id = m.id", "self joins are not yet supported"),
        ("l JOIN r WITHIN 1 DAY ON l.id > r.id", "Only equality"),
        ("l JOIN r WITHIN 1 DAY ON l.id = l.x", "references from exactly one source"),
        ("l JOIN r WITHIN 1 DAY ON id = r.id", "column 'ID' is ambiguous. Could be L.ID or R.ID."),
    ],
)
def test_joins_that_cannot_be(query: str, message: str) -> None:
    driver = SqlTestDriver(STREAMS, TABLES)
    with pytest.raises(SqlError) as error:
        driver.prepare(f"SELECT * FROM {query} EMIT CHANGES;")
    assert message in error.value.message
    assert error.value.at is not None


def test_partitions_of_both_sides_must_be_equal() -> None:
    driver = SqlTestDriver(
        STREAMS, "CREATE TABLE three (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='three', PARTITIONS=3);"
    )
    with pytest.raises(SqlError, match=r"partitions don't match. `L` partitions = 1; `THREE` partitions = 3"):
        driver.prepare("SELECT * FROM l JOIN three ON l.id = three.id EMIT CHANGES;")
    driver.prepare("SELECT * FROM l JOIN three ON l.x = three.id EMIT CHANGES;")


def test_the_synthetic_key_of_a_join_ends_where_rows_move_on() -> None:
    driver = SqlTestDriver(STREAMS, TABLES)
    rest = "FROM l FULL JOIN r WITHIN 1 DAY ON l.id = r.id JOIN t ON l.x = t.id"
    driver.prepare(f"CREATE STREAM j AS SELECT t.id AS id, a, b, c {rest};")
    with pytest.raises(SqlError, match="column 'ROWKEY' cannot be resolved"):
        driver.prepare(f"CREATE STREAM j AS SELECT ROWKEY, a, b, c {rest};")

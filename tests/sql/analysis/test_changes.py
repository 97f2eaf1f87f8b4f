"""CREATE, DROP, ALTER, REPLACE, types: what they change, what they need, what they refuse."""

from __future__ import annotations

import re

import pytest

from barnabas.sql.analysis.facts import InferredSchema, SchemaLookup
from barnabas.sql.analysis.work import WorkKind
from barnabas.sql.errors import SqlError
from barnabas.sql.metastore.schemas import Column
from barnabas.sql.testing import SqlTestDriver
from barnabas.sql.types.sql_types import INTEGER, STRING

S = "CREATE STREAM s (k INT KEY, v INT, w VARCHAR) WITH (KAFKA_TOPIC='s', PARTITIONS=2, REPLICAS=3);"


def test_a_sink_inherits_from_its_left_most_source() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM d (k INT KEY, v VARCHAR)"
        " WITH (KAFKA_TOPIC='d', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='TAB', KEY_FORMAT='JSON',"
        " PARTITIONS=4);",
        settings={"ksql.output.topic.name.prefix": "pre_"},
    )
    prepared = driver.prepare("CREATE STREAM x AS SELECT * FROM d;")
    [topic] = prepared.topics
    assert (topic.name, topic.partitions, topic.settings) == ("pre_X", 4, {})
    sink = prepared.work.sink
    assert (sink.key_format.name, sink.value_format.name) == ("JSON", "DELIMITED")
    assert sink.value_format.properties == {"delimiter": "\t"}
    table = driver.prepare(
        "CREATE TABLE x WITH (VALUE_FORMAT='AVRO', PARTITIONS=1, KAFKA_TOPIC='other') AS"
        " SELECT k, COUNT(*) AS n FROM d WINDOW TUMBLING (SIZE 1 DAY) GROUP BY k;"
    )
    assert table.topics[0].settings == {"cleanup.policy": "compact,delete"}
    assert table.work.sink.window.size_ms == 86_400_000
    assert (table.starts, table.work.application_id) == (
        "CTAS_X_1",
        "_confluent-ksql-default_query_CTAS_X_1",
    )


def test_columns_come_from_the_registry_and_are_written_out() -> None:
    schemas = {
        SchemaLookup("t", True, "AVRO"): InferredSchema(1, (Column("anything", INTEGER),), is_bare=True),
        SchemaLookup("t", False, "AVRO"): InferredSchema(2, (Column("name", STRING), Column("N", INTEGER))),
    }
    driver = SqlTestDriver(schemas=schemas)
    prepared = driver.prepare("CREATE TABLE t WITH (KAFKA_TOPIC='t', FORMAT='AVRO', PARTITIONS=1);")
    assert str(prepared.schema) == "`ROWKEY` INTEGER PRIMARY KEY, `name` STRING, `N` INTEGER"
    assert prepared.text == (
        "CREATE TABLE T (ROWKEY INTEGER PRIMARY KEY, `name` STRING, N INTEGER)"
        " WITH ('KAFKA_TOPIC' = 't', 'FORMAT' = 'AVRO', 'PARTITIONS' = 1);"
    )
    with pytest.raises(SqlError, match="values on topic 'q' does not exist in the Schema Registry"):
        driver.prepare("CREATE STREAM q WITH (KAFKA_TOPIC='q', VALUE_FORMAT='AVRO', PARTITIONS=1);")


def test_what_is_read_is_not_dropped_and_queries_of_their_own_end() -> None:
    driver = SqlTestDriver(S, "CREATE STREAM x AS SELECT * FROM s; CREATE STREAM y AS SELECT * FROM x;")
    with pytest.raises(SqlError, match=re.escape("queries read from this source: [CSAS_Y_2]")):
        driver.prepare("DROP STREAM x;")
    prepared = driver.prepare("DROP STREAM y DELETE TOPIC;")
    assert (prepared.stops, prepared.drops_topics) == (("CSAS_Y_2",), ("Y",))
    driver.run("DROP STREAM y DELETE TOPIC; DROP STREAM x;")
    assert list(driver.metastore.sources) == ["S"] and not driver.metastore.queries
    assert driver.prepare("DROP STREAM IF EXISTS nothing;").changes == ()
    with pytest.raises(SqlError, match=r"Stream SS does not exist\."):
        driver.prepare("DROP STREAM ss;")
    with pytest.raises(SqlError, match="data source type is STREAM, but statement was DROP TABLE"):
        driver.prepare("DROP TABLE s;")


def test_columns_are_added_to_sources() -> None:
    driver = SqlTestDriver(S, "ALTER STREAM s ADD COLUMN x DOUBLE, ADD y VARCHAR;")
    assert [column.name for column in driver.metastore.source("S").schema] == ["K", "V", "W", "X", "Y"]
    with pytest.raises(SqlError, match="A column with the same name already exists"):
        driver.prepare("ALTER STREAM s ADD COLUMN v INT;")


def test_a_query_is_replaced_and_goes_on_with_its_state() -> None:
    driver = SqlTestDriver(S, "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;")
    driver.pipe("S", {"K": 1, "V": 1})
    prepared = driver.prepare(
        "CREATE OR REPLACE TABLE t AS SELECT k, COUNT(*) AS n FROM s WHERE v > 5 GROUP BY k;"
    )
    assert (prepared.starts, prepared.stops) == ("CTAS_T_1", ())
    driver.run(prepared.text)
    driver.pipe("S", {"K": 1, "V": 1})
    driver.pipe("S", {"K": 1, "V": 9})
    assert driver.table("T") == {(1,): {"N": 2}}
    for text in (
        "CREATE OR REPLACE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k HAVING COUNT(*) > 1;",
        "CREATE OR REPLACE TABLE t AS SELECT v, COUNT(*) AS n FROM s GROUP BY v;",
        "CREATE OR REPLACE TABLE t AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s GROUP BY k;",
    ):
        with pytest.raises(SqlError, match="Upgrades of T are not supported"):
            driver.prepare(text)


def test_a_source_is_replaced_with_more_columns_only() -> None:
    driver = SqlTestDriver(S)
    driver.run(
        "CREATE OR REPLACE STREAM s (k INT KEY, v INT, w VARCHAR, x INT)"
        " WITH (KAFKA_TOPIC='s', PARTITIONS=2);"
    )
    assert driver.metastore.source("S").schema.find("X") is not None
    for columns in ("k INT KEY, v BIGINT", "k INT KEY, v INT", "v INT, w VARCHAR", "k INT KEY, w VARCHAR"):
        with pytest.raises(SqlError, match="Cannot upgrade data source"):
            driver.prepare(f"CREATE OR REPLACE STREAM s ({columns}) WITH (KAFKA_TOPIC='s');")


def test_if_not_exists_changes_nothing_and_types_are_known() -> None:
    driver = SqlTestDriver(S, "CREATE TYPE place AS STRUCT<x INT, y INT>;")
    assert driver.prepare(S.replace("STREAM s", "STREAM IF NOT EXISTS s")).changes == ()
    driver.run("CREATE STREAM p (at_ place, many ARRAY<place>) WITH (KAFKA_TOPIC='p', PARTITIONS=1);")
    column = driver.metastore.source("P").schema.find("AT_")
    assert column is not None and str(column.kind) == "STRUCT<`X` INTEGER, `Y` INTEGER>"
    driver.run("DROP TYPE place;")
    with pytest.raises(SqlError, match="Cannot resolve unknown type: PLACE"):
        driver.prepare("CREATE STREAM q (a place) WITH (KAFKA_TOPIC='p');")


def test_source_tables_have_work_that_reads_only() -> None:
    driver = SqlTestDriver()
    prepared = driver.prepare(
        "CREATE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);"
    )
    driver.run(prepared.text)
    source = driver.prepare("CREATE SOURCE TABLE u (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t');")
    assert source.work.kind == WorkKind.SOURCE_TABLE and source.starts == "CST_U_1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM x (v INT) WITH (PARTITIONS=1);", 'Missing required property "KAFKA_TOPIC"'),
        ("CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='no');", "Topic 'no' does not exist."),
        ("CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='s', PARTITIONS=9);", "expects 9 partitions, got 2"),
        ("CREATE STREAM x (v INT) WITH (KAFKA_TOPIK='s');", "KAFKA_TOPIK. Did you mean KAFKA_TOPIC?"),
        ("CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JASON');", "Unknown format: JASON."),
        (
            "CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON', KEY_FORMAT='JSON');",
            "one is enough",
        ),
        ("CREATE TABLE x (v INT) WITH (KAFKA_TOPIC='s');", "Tables require a PRIMARY KEY."),
        ("CREATE TABLE x (k INT KEY, v INT) WITH (KAFKA_TOPIC='s');", "please use 'PRIMARY KEY' for tables"),
        (
            "CREATE STREAM x (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='s');",
            "please use 'KEY' for streams",
        ),
        ("CREATE STREAM x (k INT KEY) WITH (KAFKA_TOPIC='s');", "does not define any columns"),
        ("CREATE STREAM x (v INT, V INT) WITH (KAFKA_TOPIC='s');", "Duplicate column names: V"),
        ("CREATE STREAM x (rowtime INT) WITH (KAFKA_TOPIC='s');", "'ROWTIME' is a reserved column name"),
        (
            "CREATE STREAM x (a INT KEY, b INT KEY, v INT) WITH (KAFKA_TOPIC='s');",
            "only supports a single field",
        ),
        (
            "CREATE STREAM x (v ARRAY<INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED');",
            "does not support type 'ARRAY'",
        ),
        (
            "CREATE STREAM x (v INT, w INT) WITH (KAFKA_TOPIC='s', WRAP_SINGLE_VALUE=true);",
            "single-field value",
        ),
        (
            "CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='KAFKA', WRAP_SINGLE_VALUE=true);",
            "does not support 'wrapping'",
        ),
        (
            "CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='s', TIMESTAMP='t');",
            "does not exist in the schema: 'T'",
        ),
        ("CREATE STREAM x (v DOUBLE) WITH (KAFKA_TOPIC='s', TIMESTAMP='v');", "should be LONG(INT64)"),
        ("CREATE STREAM x (v INT) WITH (KAFKA_TOPIC='s', WINDOW_TYPE='TUMBLING');", "require 'WINDOW_SIZE'"),
        ("CREATE STREAM x (h INT HEADERS, v INT) WITH (KAFKA_TOPIC='s');", "Invalid type for HEADERS column"),
        (
            "CREATE STREAM x (v MAP<INT, INT>) WITH (KAFKA_TOPIC='s');",
            "only supports MAP types with STRING keys",
        ),
        ("CREATE STREAM x WITH (PARTITIONS=0) AS SELECT * FROM s;", "PARTITIONS is 0: at least 1 is needed"),
        ("CREATE STREAM s AS SELECT * FROM s;", "A stream with the same name already exists"),
        ("CREATE STREAM x AS SELECT v FROM s;", "Key missing from projection"),
        ("CREATE STREAM x AS SELECT k AS a, k AS b, v FROM s;", "more than once, aliased as: `A` and `B`"),
        ("CREATE STREAM x AS SELECT k FROM s;", "The projection contains no value columns"),
        ("CREATE STREAM x AS SELECT k, v, v FROM s;", "the column name `V` more than once"),
        ("CREATE STREAM x AS SELECT k, v, ROWTIME FROM s;", "Reserved column name in select: `ROWTIME`"),
        ("CREATE STREAM x AS SELECT k, NULL AS n FROM s;", "The type of column `N` is not known"),
        (
            "CREATE STREAM x AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;",
            "produces a TABLE. Please use CREATE TABLE",
        ),
        ("CREATE TABLE x AS SELECT k, v FROM s;", "produces a STREAM. Please use CREATE STREAM"),
        ("CREATE TABLE x AS SELECT k, COUNT(*) AS n FROM s;", "requires a GROUP BY clause"),
        ("CREATE TABLE x AS SELECT k, v, COUNT(*) AS n FROM s GROUP BY k;", "not part of GROUP BY: V"),
        (
            "CREATE TABLE x AS SELECT COUNT(*) AS n FROM s GROUP BY k;",
            "must include the grouping expression S.K",
        ),
        ("CREATE TABLE x AS SELECT k, v FROM s GROUP BY k, v;", "GROUP BY requires aggregate functions"),
        ("CREATE TABLE x AS SELECT k, SUM(COUNT(*)) AS n FROM s GROUP BY k;", "can not be nested"),
        ("CREATE TABLE x AS SELECT k, SUM(w) AS n FROM s GROUP BY k;", "SUM does not take (STRING)"),
        ("CREATE STREAM x AS SELECT k, v FROM s WHERE COUNT(*) > 1;", "not allowed in WHERE"),
        ("CREATE STREAM x AS SELECT k, v FROM s WHERE v;", "Should evaluate to boolean but is V (INTEGER)"),
        ("CREATE STREAM x AS SELECT k, v FROM s LIMIT 3;", "LIMIT is not supported"),
        ("INSERT INTO s SELECT k, w, v FROM s;", "Incompatible schema between results and sink."),
        ("INSERT INTO s SELECT k, v AS w FROM s;", "Result schema is `K` INTEGER KEY, `W` INTEGER"),
        ("INSERT INTO s VALUES (1, 2);", "Expected a value for each column"),
        ("INSERT INTO s (q) VALUES (1);", "Column name `Q` does not exist."),
        ("INSERT INTO s (v) VALUES ('x');", "'x' is no INTEGER"),
        ("INSERT INTO s (v) VALUES (5000000000);", "V"),
        ("SELECT * FROM t EMIT CHANGES;", "T does not exist."),
        ("SELECT t.v FROM s EMIT CHANGES;", "column 'T.V' cannot be resolved"),
    ],
)
def test_statements_that_cannot_be_say_why_and_where(text: str, message: str) -> None:
    driver = SqlTestDriver(S)
    with pytest.raises(SqlError) as error:
        driver.prepare(text)
    assert message in error.value.message
    assert error.value.at is not None


def test_inserted_rows_are_converted() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM m (k VARCHAR KEY, b BIGINT, c DECIMAL(6, 2), d DOUBLE, t TIMESTAMP, e ARRAY<BIGINT>,"
        " s STRUCT<x INT, y VARCHAR>) WITH (KAFKA_TOPIC='m', PARTITIONS=1);",
        now_ms=5,
    )
    driver.run(
        "INSERT INTO m VALUES ('k', 1, 2, 3, '2024-01-01', ARRAY[1, 2],"
        " STRUCT(x := 1, y := CONCAT('a', 'b')));"
        "INSERT INTO m (ROWTIME, b) VALUES (77, -9);"
    )
    first, second = driver.rows("M")
    assert (first.timestamp, second.timestamp, second.key) == (5, 77, None)
    assert first.value is not None
    assert [str(first.value[name]) for name in "BCDE"] == ["1", "2.00", "3.0", "[1, 2]"]
    assert first.value["S"] == {"X": 1, "Y": "ab"}
    table = SqlTestDriver("CREATE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);")
    with pytest.raises(SqlError, match="primary key column"):
        table.run("INSERT INTO t (v) VALUES (1);")


def test_properties_of_the_session_come_before_the_servers() -> None:
    driver = SqlTestDriver("SET 'ksql.persistence.default.format.value' = 'DELIMITED';", S)
    assert driver.metastore.source("S").value_format.name == "DELIMITED"


def test_streams_without_keys_join_by_their_columns() -> None:
    driver = SqlTestDriver(
        "CREATE STREAM a (x INT, v VARCHAR) WITH (KAFKA_TOPIC='a', PARTITIONS=1);"
        "CREATE STREAM b (x INT, w VARCHAR) WITH (KAFKA_TOPIC='b', PARTITIONS=1);"
        "CREATE STREAM j AS SELECT a.x AS x, v, w FROM a JOIN b WITHIN 1 DAY ON a.x = b.x;"
    )
    assert driver.metastore.source("A").key_format.name == "NONE"
    driver.pipe("A", {"X": 1, "V": "v"})
    driver.pipe("B", {"X": 1, "W": "w"})
    assert driver.values("J") == [{"X": 1, "V": "v", "W": "w"}]
    assert driver.metastore.source("J").key_format.name == "KAFKA"
    push = driver.push("SELECT v, x, COUNT(*) AS n FROM a GROUP BY v, x EMIT CHANGES;")
    assert push.read() == [["v", 1, 1]]


def test_a_statement_that_is_nested_too_deeply_is_refused() -> None:
    driver = SqlTestDriver(S)
    for depth in (150, 400, 900, 5000):
        text = "SELECT " + " + ".join(["v"] * depth) + " AS total FROM s EMIT CHANGES;"
        try:
            driver.prepare(text)
        except SqlError as error:
            assert "nested too deeply" in error.message


def test_a_value_that_cannot_be_computed_is_refused_with_its_column() -> None:
    driver = SqlTestDriver(S)
    with pytest.raises(SqlError, match="Failed to insert a value into V: / by zero"):
        driver.prepare("INSERT INTO s (k, v) VALUES (1, 1 / 0);")

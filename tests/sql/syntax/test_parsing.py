"""Statements become trees; errors say where, and what would be right."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parsing import parse_expression, parse_statement, parse_type
from barnabas.sql.syntax.splitting import split, substitute
from barnabas.sql.types import sql_types as kinds

KINDS = {
    "CREATE STREAM s (a INT KEY, b STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');": made.CreateSource,
    "CREATE OR REPLACE SOURCE TABLE t WITH (kafka_topic='t', partitions=2)": made.CreateSource,
    "CREATE STREAM s AS SELECT * FROM t EMIT CHANGES": made.CreateAs,
    "CREATE TABLE t WITH (partitions=1) AS SELECT a, COUNT(*) FROM s GROUP BY a": made.CreateAs,
    "INSERT INTO s WITH (QUERY_ID='q') SELECT * FROM t": made.InsertInto,
    "INSERT INTO s (a, b) VALUES (1, ARRAY[1, 2])": made.InsertValues,
    "SELECT * FROM s EMIT FINAL LIMIT 3": made.Query,
    "DROP STREAM IF EXISTS s DELETE TOPIC": made.DropSource,
    "DROP TABLE t": made.DropSource,
    "ALTER STREAM s ADD COLUMN a INT, ADD b ARRAY<STRING>": made.AlterSource,
    "CREATE TYPE IF NOT EXISTS address AS STRUCT<street STRING, zip INT>": made.CreateType,
    "DROP TYPE address": made.DropType,
    "TERMINATE CSAS_S_1": made.ControlQuery,
    "PAUSE ALL": made.ControlQuery,
    "RESUME q": made.ControlQuery,
    "EXPLAIN CSAS_S_1": made.Explain,
    "EXPLAIN SELECT a FROM s EMIT CHANGES": made.Explain,
    "DESCRIBE s EXTENDED": made.Describe,
    "DESCRIBE STREAMS": made.DescribeAll,
    "DESCRIBE TABLES EXTENDED": made.DescribeAll,
    "DESCRIBE FUNCTION substring": made.DescribeFunction,
    "DESCRIBE CONNECTOR c": made.DescribeConnector,
    "LIST STREAMS EXTENDED": made.Listing,
    "SHOW TABLES": made.Listing,
    "SHOW ALL TOPICS": made.Listing,
    "SHOW QUERIES": made.Listing,
    "LIST FUNCTIONS": made.Listing,
    "SHOW PROPERTIES": made.Listing,
    "SHOW TYPES": made.Listing,
    "SHOW VARIABLES": made.Listing,
    "SHOW SOURCE CONNECTORS": made.Listing,
    "SHOW CONNECTOR PLUGINS": made.Listing,
    "PRINT 'my-topic' FROM BEGINNING INTERVAL 2 LIMIT 3": made.Print,
    "SET 'auto.offset.reset' = 'earliest'": made.SetProperty,
    "UNSET 'auto.offset.reset'": made.UnsetProperty,
    "ALTER SYSTEM 'a' = 'b'": made.AlterSystem,
    "DEFINE name = 'text'": made.Define,
    "UNDEFINE name": made.Undefine,
    "CREATE SINK CONNECTOR IF NOT EXISTS c WITH ('tasks.max'=1)": made.CreateConnector,
    "DROP CONNECTOR c": made.DropConnector,
    "ASSERT NOT EXISTS TOPIC t TIMEOUT 3 SECONDS": made.AssertTopic,
    "ASSERT TOPIC t WITH (PARTITIONS=3)": made.AssertTopic,
    "ASSERT SCHEMA SUBJECT s ID 4": made.AssertSchema,
    "RUN SCRIPT 'f.sql'": made.RunScript,
    "SPOOL OFF": made.Spool,
}


@pytest.mark.parametrize("text", KINDS)
def test_every_statement_is_parsed(text: str) -> None:
    assert type(parse_statement(text)) is KINDS[text]


def test_names_become_upper_case_unless_they_are_quoted() -> None:
    assert parse_expression("abc") == tree.Name("ABC")
    assert parse_expression('`a``b`."c"') == tree.Name("c", "a`b")


def test_literals_have_the_smallest_type() -> None:
    assert parse_expression("2147483648") == tree.Literal(2147483648, kinds.BIGINT)
    assert parse_expression("-2147483648") == tree.Literal(-2147483648, kinds.INTEGER)
    assert str(parse_expression("1.50").kind) == "DECIMAL(3, 2)"  # type: ignore[attr-defined]
    assert parse_expression("1e0") == tree.Literal(1.0, kinds.DOUBLE)


def test_operators_bind_as_in_the_reference() -> None:
    assert parse_expression("a || b + 1 = c AND NOT d OR e") == parse_expression(
        "(((a || (b + 1)) = c) AND (NOT d)) OR e"
    )
    assert parse_expression("a BETWEEN 1 AND 2 AND b") == parse_expression("(a BETWEEN 1 AND 2) AND b")


def test_types_are_parsed() -> None:
    assert parse_type("INT ARRAY") == kinds.Array(kinds.INTEGER)
    assert str(parse_type("struct<a int, `b` map<varchar(3), decimal(4,2)>>")) == (
        "STRUCT<`A` INTEGER, `b` MAP<STRING, DECIMAL(4, 2)>>"
    )
    assert parse_type("address") == kinds.Named("ADDRESS")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("selct a from b", "line 1, column 1: 'selct' is not expected here. Did you mean SELECT?"),
        ("SELECT a\nFROM select", "line 2, column 6: 'select' is a reserved word"),
        ("DROP STRAEM x", "line 1, column 6: 'STRAEM' is not expected here. Did you mean STREAM?"),
        ("SELECT a FROM", "the statement ends too early: expected"),
        ("SELECT a # b FROM c", "line 1, column 10: '#' is no part of a statement"),
        ("SELECT CAST(a AS DECIMAL) FROM b", "DECIMAL needs its precision and scale"),
        ("SELECT " + "(" * 500 + "1" + ")" * 500 + " FROM a", "nested more than 200 levels"),
        ("SELECT 'a FROM b", "line 1, column 8: the quote ' is not closed"),
        ("SELECT f(a + 1 => 2) FROM b", "parameters of a lambda are plain names"),
    ],
)
def test_errors_say_where_and_what_would_be_right(text: str, error: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(text)
    assert error in str(caught.value)


def test_statements_are_split_outside_of_quotes_and_comments() -> None:
    text = "-- a;b\nSET 'x;' = '''';\n  /* ; */ SELECT `;` FROM a; \n rest"
    found = list(split(text))
    assert [each.text for each in found] == ["SET 'x;' = ''''", "SELECT `;` FROM a", "rest"]
    assert [(each.at.line, each.at.column) for each in found] == [(2, 1), (3, 11), (4, 2)]
    assert [each.is_ended for each in found] == [True, True, False]


def test_variables_are_replaced_in_quotes_too() -> None:
    assert substitute("a ${x} '${X}'", {"x": "1"}) == "a 1 '1'"
    with pytest.raises(SqlError, match=r"the variable topc is not defined\. Did you mean topic\?"):
        substitute("${topc}", {"topic": "1"})

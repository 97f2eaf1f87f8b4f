"""The metastore: what refers to what, and drops that are refused."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.metastore.metastore import (
    DataSource,
    Metastore,
    PutQuery,
    PutSource,
    PutType,
    QueryEntry,
    RemoveQuery,
    RemoveSource,
    RemoveType,
)
from barnabas.sql.metastore.schemas import Column, Format, Schema
from barnabas.sql.syntax.statements import Role
from barnabas.sql.types.sql_types import INTEGER, STRING

SCHEMA = Schema((Column("ID", STRING, Role.KEY), Column("v", INTEGER)))


def source(name: str, made_by: str | None = None, is_table: bool = False) -> DataSource:
    return DataSource(name, is_table, SCHEMA, name, Format("KAFKA"), Format("JSON"), made_by=made_by)


def made() -> Metastore:
    """A is read by CSAS_B_1, which makes B; INSERTQUERY_2 writes B too."""
    return Metastore().apply(
        [
            PutSource(source("A")),
            PutSource(source("B", made_by="CSAS_B_1")),
            PutQuery(QueryEntry("CSAS_B_1", "CREATE_AS", "…", ("A",), "B")),
        ]
    )


def test_a_schema_is_written_as_ksqldb_does() -> None:
    assert str(SCHEMA) == "`ID` STRING KEY, `v` INTEGER"


def test_a_source_with_readers_is_not_dropped_and_they_are_named() -> None:
    with pytest.raises(SqlError, match=r"read from this source: \[CSAS_B_1\]"):
        made().apply([RemoveSource("A")])


def test_dropping_what_a_query_made_ends_the_query() -> None:
    after = made().apply([RemoveSource("B")])
    assert not after.queries
    after.apply([RemoveSource("A")])


def test_a_second_writer_keeps_its_sink_from_being_dropped() -> None:
    both = made().apply([PutQuery(QueryEntry("INSERTQUERY_2", "INSERT", "…", ("A",), "B"))])
    with pytest.raises(SqlError, match=r"write into this source: \[INSERTQUERY_2\]"):
        both.apply([RemoveSource("B")])
    both.apply([RemoveQuery("INSERTQUERY_2"), RemoveSource("B")])


def test_a_name_is_taken_once() -> None:
    with pytest.raises(SqlError, match="same name already exists"):
        made().apply([PutSource(source("A", is_table=True))])
    assert made().apply([PutSource(source("A", is_table=True), replaces=True)]).sources["A"].is_table


def test_an_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(SqlError, match=r"ORDER does not exist.* Did you mean ORDERS"):
        made().apply([PutSource(source("ORDERS"))]).source("ORDER")


def test_types() -> None:
    known = Metastore().apply([PutType("ADDRESS", STRING)])
    with pytest.raises(SqlError, match="already registered"):
        known.apply([PutType("ADDRESS", INTEGER)])
    assert not known.apply([RemoveType("ADDRESS")]).types
    with pytest.raises(SqlError, match="Did you mean ADDRESS"):
        known.apply([RemoveType("ADRESS")])

"""CREATE OR REPLACE: what may change while a source or a query goes on.

Columns may be added at the end, and WHERE may change. Everything else would make state or bytes that exist
mean something else. Does not know: how a query goes on.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.sql.analysis.context import Context
from barnabas.sql.errors import SqlError
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.statements import CreateAs, Query


def check_source_replacement(before: DataSource, after: DataSource) -> None:
    def refuse(reason: str) -> SqlError:
        return SqlError(f"Cannot upgrade data source: {before.kind.lower()} {before.name}: {reason}")

    if before.is_table != after.is_table:
        raise refuse(f"it is a {before.kind.upper()}, not a {after.kind.upper()}")
    if before.is_source or after.is_source:
        raise refuse("CREATE OR REPLACE is not supported on source streams and tables")
    for what, one, two in (
        ("topic", before.topic, after.topic),
        ("key format", before.key_format, after.key_format),
        ("value format", before.value_format, after.value_format),
        ("window", before.window, after.window),
        ("timestamp", before.timestamp, after.timestamp),
    ):
        if one != two:
            raise refuse(f"the {what} cannot change from {one} to {two}")
    if before.schema.key != after.schema.key:
        raise refuse(
            f"key columns cannot change: from ({', '.join(map(str, before.schema.key))}) to "
            f"({', '.join(map(str, after.schema.key))})"
        )
    for column, same in zip(before.schema.value, after.schema.value, strict=False):
        if column != same:
            raise refuse(f"the column {column} must stay where it is; columns can be added at the end")
    if len(after.schema.value) < len(before.schema.value):
        raise refuse(f"columns cannot be removed: {before.schema.value[len(after.schema.value)]}")
    if before.schema.headers != after.schema.headers:
        raise refuse("header columns cannot change")


def check_query_replacement(before: DataSource, statement: CreateAs, context: Context) -> None:
    """The query of a CREATE OR REPLACE … AS against the one that runs."""
    if before.made_by is None or before.made_by not in context.metastore.queries:
        raise SqlError(
            f"Cannot upgrade {before.name}: it was not made by CREATE … AS SELECT, or its query has ended",
            statement.at,
        )
    old = parse_statement(context.metastore.queries[before.made_by].statement)
    if not isinstance(old, CreateAs):
        return
    for what, one, two in _parts(old.query, statement.query):
        if one != two:
            raise SqlError(
                f"Upgrades of {before.name} are not supported for this change: the {what} of the query "
                "differs. WHERE may change, and columns may be added at the end.",
                statement.at,
            )
    added = statement.query.items[len(old.query.items) :]
    if added and statement.query.group_by:
        raise SqlError(
            f"Upgrades of {before.name} are not supported: columns cannot be added to an aggregation, whose "
            "state does not have them.",
            statement.at,
        )


def _parts(old: Query, new: Query) -> list[tuple[str, object, object]]:
    items = new.items[: len(old.items)]
    return [
        ("source", old.source, new.source),
        ("join", _plain(old), _plain(new)),
        ("window", old.window, new.window),
        ("GROUP BY", old.group_by, new.group_by),
        ("PARTITION BY", old.partition_by, new.partition_by),
        ("HAVING", old.having, new.having),
        ("EMIT", old.emit or "CHANGES", new.emit or "CHANGES"),
        ("list of columns", old.items, items),
    ]


def _plain(query: Query) -> tuple[object, ...]:
    return tuple(replace(join, at=None) for join in query.joins)

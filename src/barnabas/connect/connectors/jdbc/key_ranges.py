"""Slices of a table by key, cut into ranges that executors read side by side.

In: a dialect, a table with a growing number or a numeric primary key, a position. Out: the next slice: at
most so many rows, as ranges of nearly equal size, found by one look at the key's index. Does not know: Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from barnabas.connect.connectors.databases.catalogue import ColumnInfo, SqlType, TableId
from barnabas.connect.connectors.databases.dialect import Dialect, escaped
from barnabas.connect.plugins import ConnectError

WHOLE_NUMBERS = (SqlType.TINYINT, SqlType.SMALLINT, SqlType.INTEGER, SqlType.BIGINT, SqlType.NUMERIC)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows with `after` < key <= `until`; None: no bound."""

    after: int | None
    until: int | None


@dataclass(frozen=True, slots=True)
class KeySlice:
    ranges: tuple[KeyRange, ...]
    rows: int
    until: int | None  # the last key


def next_slice(
    dialect: Dialect, connection: Any, table: TableId, key: str, after: int | None, rows_max: int, pieces: int
) -> KeySlice | None:
    """The next rows behind a key; None if there are none."""
    values = [after] if after is not None else []
    column, name = dialect.quoted(key), dialect.table_name(table)
    if values:
        column, name = escaped(column), escaped(name)
    condition = f" WHERE {column} > %s" if values else ""
    numbered = (
        f"SELECT {column} AS k, ROW_NUMBER() OVER (ORDER BY {column}) AS n FROM {name}{condition}"
        f" ORDER BY {column} LIMIT {int(rows_max)}"
    )
    found = dialect.fetch(connection, f"SELECT COUNT(*), MAX(k) FROM ({numbered}) s", values)
    count, last = int(found[0][0]), found[0][1]
    if not count:
        return None
    step = max(1, -(-count // pieces))
    places = ", ".join(str(each) for each in range(step, count, step))
    cuts = (
        dialect.fetch(connection, f"SELECT k FROM ({numbered}) s WHERE n IN ({places}) ORDER BY k", values)
        if places
        else []
    )
    connection.rollback()
    bounds: list[int | None] = [after, *dict.fromkeys(whole(row[0]) for row in cuts), whole(last)]
    ranges = tuple(KeyRange(first, until) for first, until in pairwise(bounds) if first != until)
    return KeySlice(ranges, count, whole(last))


def whole(value: Any) -> int:
    found = int(value)
    if found != value:
        raise ConnectError(f"the key {value} is no whole number: ranges need one")
    return found


def range_query(
    dialect: Dialect, table: TableId, columns: Sequence[str], key: str, asked: KeyRange
) -> tuple[str, list[Any]]:
    """The statement that reads columns of a range, in the order of its key."""
    bounds = {"> %s": asked.after, "<= %s": asked.until}
    values = [each for each in bounds.values() if each is not None]
    names, name = ", ".join(map(dialect.quoted, columns)), dialect.table_name(table)
    column = dialect.quoted(key) if key else ""
    if values:
        names, name, column = escaped(names), escaped(name), escaped(column)
    parts = [f"{column} {sign}" for sign, bound in bounds.items() if bound is not None]
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    order = f" ORDER BY {column}" if column else ""
    return f"SELECT {names} FROM {name}{where}{order}", values


def key_column(columns: list[ColumnInfo], wanted: str, table: TableId) -> str:
    """The column that cuts a table into ranges: the one that is named, or a numeric primary key of one
    column. Empty if there is none: the table is read as a whole, by one task."""
    by_name = {each.name.lower(): each for each in columns}
    if wanted:
        found = by_name.get(wanted.lower())
        if found is None:
            raise ConnectError(
                f"the table {table} has no column {wanted}: it has {', '.join(each.name for each in columns)}"
            )
        if found.type not in WHOLE_NUMBERS or found.nullable:
            raise ConnectError(
                f"the column {wanted} of {table} cannot cut it into ranges: it must be a whole number and"
                " NOT NULL"
            )
        return found.name
    keys = [each for each in columns if each.key_position]
    return keys[0].name if len(keys) == 1 and keys[0].type in WHOLE_NUMBERS else ""

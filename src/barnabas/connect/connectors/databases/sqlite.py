"""SQLite, of Python's own library. Types are those that columns declare; values are what was stored."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from barnabas.connect.connectors.databases.address import AddressError
from barnabas.connect.connectors.databases.catalogue import ColumnInfo, SqlType, TableId
from barnabas.connect.connectors.databases.dialect import CONNECT_TIMEOUT_S, Dialect, Row
from barnabas.connect.connectors.databases.postgres import fetched

DECLARED = (  # the first that is part of the declared type counts
    ("BOOL", SqlType.BOOLEAN),
    ("INT", SqlType.BIGINT),
    ("CHAR", SqlType.TEXT),
    ("CLOB", SqlType.TEXT),
    ("TEXT", SqlType.TEXT),
    ("BLOB", SqlType.BINARY),
    ("REAL", SqlType.DOUBLE),
    ("FLOA", SqlType.DOUBLE),
    ("DOUB", SqlType.DOUBLE),
    ("TIMESTAMP", SqlType.TIMESTAMP),
    ("DATETIME", SqlType.TIMESTAMP),
    ("DATE", SqlType.DATE),
    ("TIME", SqlType.TIME),
    ("DEC", SqlType.DECIMAL),
    ("NUM", SqlType.NUMERIC),
)
SIZES = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


class Sqlite(Dialect):
    NAME = "SqliteDatabaseDialect"
    LOCKS = ""  # `begin` locks the database
    TYPES = {
        "int8": "INTEGER",
        "int16": "INTEGER",
        "int32": "INTEGER",
        "int64": "INTEGER",
        "float32": "REAL",
        "float64": "REAL",
        "boolean": "INTEGER",
        "string": "TEXT",
        "bytes": "BLOB",
        "Decimal": "NUMERIC",
        "Date": "NUMERIC",
        "Time": "NUMERIC",
        "Timestamp": "NUMERIC",
    }

    def connect(self) -> Any:
        path = Path(self.address.database)
        if not path.parent.is_dir():
            raise AddressError(f"there is no folder {path.parent} for the database {path.name}")
        return sqlite3.connect(path, timeout=CONNECT_TIMEOUT_S, check_same_thread=False)

    @property
    def errors(self) -> type[Exception]:
        return sqlite3.Error

    def is_away(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError) and (
            "locked" in str(error) or "busy" in str(error)
        )

    def is_data_error(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)

    def isolate(self, connection: Any, level: str) -> None:
        """Transactions are serializable, which is more than any other level promises."""

    def begin(self, connection: Any) -> None:
        """Lock the database for writing. The driver begins with a change only, not with a savepoint."""
        connection.execute("BEGIN IMMEDIATE")

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> None:
        connection.execute(marked(statement), plain(values))

    def execute_many(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        return int(connection.executemany(marked(statement), map(plain, rows)).rowcount)

    def fetch(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return list(connection.execute(marked(statement), plain(values)).fetchall())

    def stream(
        self, connection: Any, statement: str, values: Sequence[Any], rows: int
    ) -> tuple[list[ColumnInfo], Iterator[list[Row]]]:
        cursor = connection.execute(marked(statement), plain(values))
        return [ColumnInfo(each[0], SqlType.TEXT, "") for each in cursor.description], fetched(cursor, rows)

    def now(self, connection: Any) -> datetime:
        return datetime.now(UTC)

    def tables(
        self, connection: Any, types: Sequence[str], catalog: str | None, schema: str | None
    ) -> list[TableId]:
        kinds = [each.lower() for each in types if each.upper() in ("TABLE", "VIEW")]
        query = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        return [TableId("", "", name) for kind, name in connection.execute(query) if kind in kinds]

    def find(self, connection: Any, parts: Sequence[str]) -> TableId | None:
        found = connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (parts[-1],)).fetchone()
        return TableId("", "", found[0]) if found else None

    def columns(self, connection: Any, table: TableId) -> list[ColumnInfo]:
        found = connection.execute(
            'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', (table.name,)
        )
        rows = found.fetchall()
        keys = sum(row[4] > 0 for row in rows)
        return [declared(row, is_only_key=keys == 1) for row in rows]

    def folded(self, name: str) -> str:
        return name.lower()

    def upsert(
        self, table: TableId, keys: Sequence[str], others: Sequence[str], casts: Mapping[str, str]
    ) -> str:
        names = ", ".join(map(self._name, keys))
        sets = ", ".join(f"{self._name(each)} = excluded.{self._name(each)}" for each in others)
        action = f"DO UPDATE SET {sets}" if others else "DO NOTHING"
        return f"{self.insert(table, [*keys, *others], casts)} ON CONFLICT ({names}) {action}"


def declared(row: Row, *, is_only_key: bool) -> ColumnInfo:
    name, native, not_null, default, key = row
    kind = next((each for word, each in DECLARED if word in native.upper()), SqlType.TEXT)
    sizes = SIZES.search(native)
    is_rowid = bool(key) and is_only_key and native.upper() == "INTEGER"
    return ColumnInfo(
        name,
        kind,
        native,
        int(sizes[1]) if sizes else 0,
        int(sizes[2] or 0) if sizes else None,
        nullable=not (not_null or is_rowid),
        has_default=default is not None or is_rowid,
        auto_increment=is_rowid,
        key_position=key,
    )


def marked(statement: str) -> str:
    """SQLite's placeholders."""
    return statement.replace("%s", "?").replace("%%", "%")


def plain(values: Sequence[Any]) -> list[Any]:
    """Values that SQLite stores: times as ISO texts, decimals as texts."""
    return [
        each if each is None or isinstance(each, int | float | str | bytes) else stored(each)
        for each in values
    ]


def stored(value: Any) -> Any:
    if isinstance(value, datetime):
        local = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        digits = local.microsecond  # texts are compared: no digits where the rows have none
        return local.isoformat(
            " ", "microseconds" if digits % 1000 else "milliseconds" if digits else "seconds"
        )
    return str(value)

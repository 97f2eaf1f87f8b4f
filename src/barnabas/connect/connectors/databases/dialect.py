"""Differences between databases: connecting, quoting, catalogues, reading rows as a stream, writing rows.

A dialect opens connections of Python's DB-API. Placeholders of all statements are `%s`; a dialect whose
driver
has another mark changes them. Does not know: connectors, records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, ClassVar

from barnabas.connect.connectors.databases.address import Address
from barnabas.connect.connectors.databases.catalogue import ColumnInfo, TableId

Row = tuple[Any, ...]
CONNECT_TIMEOUT_S = 20


class Dialect(ABC):
    """One kind of database."""

    NAME: ClassVar[str]
    MARK: ClassVar[str] = '"'  # around names
    TYPES: ClassVar[Mapping[str, str]] = {}  # Connect's types, for CREATE TABLE
    KEY_TEXT: ClassVar[str] = "TEXT"  # the type of texts in a primary key
    HAS_ARRAYS: ClassVar[bool] = False
    ISOLATE: ClassVar[str] = "SET SESSION TRANSACTION ISOLATION LEVEL "
    LOCKS: ClassVar[str] = " FOR UPDATE"  # behind a query whose rows no other transaction may change
    BYTES: ClassVar[str] = "X'{}'"  # bytes in hexadecimal digits, in a statement

    def __init__(self, address: Address, *, quotes: bool = True) -> None:
        self.address = address
        self.quotes = quotes

    # -- names -------------------------------------------------------------------------------------

    def quoted(self, name: str) -> str:
        return f"{self.MARK}{name.replace(self.MARK, self.MARK * 2)}{self.MARK}" if self.quotes else name

    def table_name(self, table: TableId) -> str:
        """A table in a statement."""
        return ".".join(self.quoted(each) for each in table.parts)

    def folded(self, name: str) -> str:
        """The name of a column as the catalogue compares it."""
        return name

    # -- connections -------------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> Any:
        """A connection of the driver, without autocommit."""

    @abstractmethod
    def is_away(self, error: BaseException) -> bool:
        """Whether an error means that the server is away or busy, so that a retry may work."""

    @abstractmethod
    def is_data_error(self, error: BaseException) -> bool:
        """Whether an error is about the values of one statement, so that other rows may be written."""

    @property
    @abstractmethod
    def errors(self) -> type[Exception]:
        """The base of the driver's errors."""

    @abstractmethod
    def stream(
        self, connection: Any, statement: str, values: Sequence[Any], rows: int
    ) -> tuple[list[ColumnInfo], Iterator[list[Row]]]:
        """Run a query: its columns, and its rows in lists of at most `rows`."""

    @abstractmethod
    def now(self, connection: Any) -> datetime:
        """The database's time, in UTC."""

    def isolate(self, connection: Any, level: str) -> None:
        """Give the connection's transactions a level of isolation, such as READ COMMITTED."""
        self.execute(connection, self.ISOLATE + level)
        connection.commit()

    def begin(self, connection: Any) -> None:  # noqa: B027  # most drivers begin with the first statement
        """Begin a transaction."""

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> None:
        cursor = connection.cursor()
        try:
            cursor.execute(statement, values) if values else cursor.execute(statement)
        finally:
            cursor.close()

    def execute_many(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row. Out: how many rows it touched, -1 if the driver does not say."""
        cursor = connection.cursor()
        try:
            cursor.executemany(statement, rows)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def fetch(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = connection.cursor()
        try:
            cursor.execute(statement, values) if values else cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()

    # -- catalogue ---------------------------------------------------------------------------------

    @abstractmethod
    def tables(
        self, connection: Any, types: Sequence[str], catalog: str | None, schema: str | None
    ) -> list[TableId]:
        """Tables of these types; patterns as LIKE, None for any."""

    @abstractmethod
    def find(self, connection: Any, parts: Sequence[str]) -> TableId | None:
        """The table of a name with one to three parts, None if there is none."""

    @abstractmethod
    def columns(self, connection: Any, table: TableId) -> list[ColumnInfo]:
        """The columns of a table in order."""

    # -- writing -----------------------------------------------------------------------------------

    def stored(self, value: datetime, native: str, zone: tzinfo) -> datetime:
        """A point in time as a column of this type takes and compares it: by default local in a zone."""
        return value.astimezone(zone).replace(tzinfo=None)

    def refusal_of_upserts(self, connection: Any, table: TableId, columns: Iterable[str]) -> str:
        """Why upserts of these columns would find no row, if the database does not say so itself."""
        return ""

    @abstractmethod
    def upsert(
        self, table: TableId, keys: Sequence[str], others: Sequence[str], casts: Mapping[str, str]
    ) -> str:
        """A statement that inserts a row or updates the one with its key. Values: keys, then others."""

    def insert(self, table: TableId, columns: Sequence[str], casts: Mapping[str, str]) -> str:
        names = ", ".join(map(self._name, columns))
        marks = ", ".join("%s" + casts.get(each, "") for each in columns)
        return f"INSERT INTO {escaped(self.table_name(table))} ({names}) VALUES ({marks})"

    def update(
        self, table: TableId, keys: Sequence[str], others: Sequence[str], casts: Mapping[str, str]
    ) -> str:
        """Values: others, then keys."""
        sets = ", ".join(f"{self._name(each)} = %s{casts.get(each, '')}" for each in others)
        return f"UPDATE {escaped(self.table_name(table))} SET {sets} WHERE {self.condition(keys, casts)}"

    def delete(self, table: TableId, keys: Sequence[str], casts: Mapping[str, str]) -> str:
        return f"DELETE FROM {escaped(self.table_name(table))} WHERE {self.condition(keys, casts)}"

    def condition(self, keys: Sequence[str], casts: Mapping[str, str]) -> str:
        return " AND ".join(f"{self._name(each)} = %s{casts.get(each, '')}" for each in keys)

    def _name(self, column: str) -> str:
        """A column in a statement with placeholders."""
        return escaped(self.quoted(column))

    def casts(self, columns: Sequence[ColumnInfo]) -> dict[str, str]:
        """The text behind the placeholder of a column whose type does not take a text as it is."""
        return {}


def escaped(text: str) -> str:
    """A part of a statement with placeholders: a percent sign is written twice."""
    return text.replace("%", "%%")

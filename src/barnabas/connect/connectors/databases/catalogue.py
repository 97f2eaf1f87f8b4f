"""Tables and columns as a database's catalogue describes them, in words that all dialects share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote


class SqlType(StrEnum):
    """JDBC's types, as far as connectors tell them apart."""

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double"
    NUMERIC = "numeric"
    DECIMAL = "decimal"
    TEXT = "text"
    BINARY = "binary"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMP_ZONED = "timestamp with time zone"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class TableId:
    """A table by its full name. MySQL has no schemas, SQLite has neither."""

    catalog: str
    schema: str
    name: str

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(each for each in (self.catalog, self.schema, self.name) if each)

    def __str__(self) -> str:
        return ".".join(self.parts)

    @property
    def entry(self) -> str:
        """The name as one entry of a list: dots and commas inside of its parts are written as %2E and %2C."""
        return ".".join(quote(each, safe=" ").replace(".", "%2E") for each in self.parts)


def parts_of(entry: str) -> list[str]:
    """The parts of a table's name in a list."""
    return [unquote(each) for each in entry.split(".")]


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of a table or of a query's result."""

    name: str
    type: SqlType
    native: str  # the database's own word
    precision: int = 0
    scale: int | None = None  # None: not limited
    nullable: bool = True
    has_default: bool = False
    auto_increment: bool = False
    unsigned: bool = False
    key_position: int = 0  # place in the primary key from 1 on; 0: not part of it
    item: SqlType | None = None  # of arrays

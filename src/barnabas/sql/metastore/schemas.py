"""Columns of streams and tables, and the formats of their bytes, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from barnabas.sql.syntax.statements import Role
from barnabas.sql.types.sql_types import BIGINT, INTEGER, SqlType, quoted

ROWTIME, ROWPARTITION, ROWOFFSET = "ROWTIME", "ROWPARTITION", "ROWOFFSET"
WINDOWSTART, WINDOWEND = "WINDOWSTART", "WINDOWEND"
PSEUDO_COLUMNS: Mapping[str, SqlType] = MappingProxyType(
    {ROWTIME: BIGINT, ROWPARTITION: INTEGER, ROWOFFSET: BIGINT}
)
WINDOW_COLUMNS: Mapping[str, SqlType] = MappingProxyType({WINDOWSTART: BIGINT, WINDOWEND: BIGINT})
NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Column:
    """`role` says where the column's value lies. `header` names the one header of HEADER('name')."""

    name: str
    kind: SqlType
    role: Role = Role.VALUE
    header: str | None = None

    @property
    def is_key(self) -> bool:
        return self.role in (Role.KEY, Role.PRIMARY_KEY)

    def __str__(self) -> str:
        role = f" {self.role.value}" if self.role != Role.VALUE else ""
        if self.header is not None:
            role = f" HEADER('{self.header}')"
        return f"{quoted(self.name)} {self.kind}{role}"


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in their order; key columns come first in `SELECT *`."""

    columns: tuple[Column, ...] = ()

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(each for each in self.columns if each.is_key)

    @property
    def value(self) -> tuple[Column, ...]:
        return tuple(each for each in self.columns if each.role == Role.VALUE)

    @property
    def headers(self) -> tuple[Column, ...]:
        return tuple(each for each in self.columns if each.role == Role.HEADERS)

    def find(self, name: str) -> Column | None:
        return next((each for each in self.columns if each.name == name), None)

    def with_columns(self, *more: Column) -> Schema:
        return replace(self, columns=(*self.columns, *more))

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __str__(self) -> str:
        """The columns as ksqlDB writes them: `` `ID` STRING KEY, `V` INTEGER ``."""
        return ", ".join(map(str, self.columns))


@dataclass(frozen=True, slots=True)
class Format:
    """A format by its name (KAFKA, JSON, …) with its settings: `delimiter`, `full_schema_name`, `schema_id`,
    `nullable_representation`. `is_wrapped` False writes a single column without a record around it."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_wrapped: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class WindowedKeys:
    """Keys with windows: `kind` is TUMBLING, HOPPING or SESSION; sessions have no size. `retention_ms`: how
    long the query that makes them keeps a window, where there is one."""

    kind: str
    size_ms: int | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """The column that gives ROWTIME; `pattern` reads it from text."""

    name: str
    pattern: str | None = None

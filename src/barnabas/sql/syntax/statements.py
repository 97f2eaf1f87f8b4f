"""Statements as trees. Durations are milliseconds with the text that they had."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.sql.errors import Position
from barnabas.sql.syntax.tree import Expression, Value
from barnabas.sql.types.sql_types import SqlType

Properties = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    at: Position | None = field(default=None, compare=False, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class Duration:
    count: int
    unit: str  # MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS

    @property
    def ms(self) -> int:
        return self.count * UNITS_MS[self.unit]

    def __str__(self) -> str:
        return f"{self.count} {self.unit}"


UNITS_MS = {"MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}


class Role(StrEnum):
    """The part that a column has."""

    VALUE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`header` is the one header of HEADER('name')."""

    name: str
    kind: SqlType
    role: Role = Role.VALUE
    header: str | None = None
    at: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Window:
    """`kind` is TUMBLING, HOPPING or SESSION; `size` is the gap of a session."""

    kind: str
    size: Duration
    advance: Duration | None = None
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    name: str
    alias: str | None = None
    at: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Join:
    """`kind` is INNER, LEFT, RIGHT or FULL."""

    kind: str
    right: Relation
    on: Expression
    before: Duration | None = None
    after: Duration | None = None
    grace: Duration | None = None
    at: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Item:
    """One of the list of SELECT."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """`emit` is CHANGES, FINAL or None (a pull query, or the default of a persistent one)."""

    items: tuple[Item, ...]
    source: Relation
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """CREATE STREAM or TABLE over a topic. `columns` is None where they come from the registry."""

    is_table: bool
    name: str
    columns: tuple[ColumnDefinition, ...] | None
    properties: Properties
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False  # read-only


@dataclass(frozen=True, slots=True)
class CreateAs(Statement):
    is_table: bool
    name: str
    query: Query
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertInto(Statement):
    target: str
    query: Query
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class DropSource(Statement):
    is_table: bool
    name: str
    if_exists: bool = False
    deletes_topic: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    is_table: bool
    name: str
    columns: tuple[tuple[str, SqlType], ...]


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    name: str
    kind: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropType(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ControlQuery(Statement):
    """TERMINATE, PAUSE or RESUME; `query_id` is None for ALL."""

    action: str
    query_id: str | None


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """One of both is given."""

    statement: Statement | None
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    name: str
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeAll(Statement):
    """DESCRIBE STREAMS or TABLES."""

    tables: bool
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeFunction(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class DescribeConnector(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class Listing(Statement):
    """LIST or SHOW. `what`: STREAMS, TABLES, TOPICS, QUERIES, FUNCTIONS, PROPERTIES, TYPES, VARIABLES,
    CONNECTORS, CONNECTOR PLUGINS. `scope`: ALL for topics, SOURCE or SINK for connectors."""

    what: str
    is_extended: bool = False
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Print(Statement):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SetProperty(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetProperty(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class AlterSystem(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Define(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Undefine(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class CreateConnector(Statement):
    kind: str  # SOURCE or SINK
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AssertTopic(Statement):
    name: str
    properties: Properties = ()
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertSchema(Statement):
    subject: str | None
    schema_id: int | None
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class RunScript(Statement):
    file: str


@dataclass(frozen=True, slots=True)
class Spool(Statement):
    """`file` is None for OFF."""

    file: str | None

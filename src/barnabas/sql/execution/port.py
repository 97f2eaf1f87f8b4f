"""The port between those who take statements (server, shell, files) and those who carry them out.

The road of a statement:

1. `parse_statement(text)` gives a tree.
2. `Engine.prepare(statement, text, metastore, properties, number)` checks it against a metastore and gives
   `Prepared`, without any effect: the metastore's changes, a query to start, topics and schemas that are
   missing. `number` is the place of the statement in its log; ids of queries end with it. `SqlError` says
   what is wrong, with its line and column. `Prepared.text` is the text to keep in a log: columns that came
   from the registry are written out in it.
3. `Engine.create_resources(prepared)` creates topics and registers schemas: once, by the node that takes
   the statement. A second time does nothing.
4. `metastore.apply(prepared.changes)` gives the next metastore; every node does this.
5. `Engine.carry_out(prepared)` starts and stops queries on this node, and deletes topics that the statement
   deletes. Every node that runs queries does this.

Queries by their id: `stop`, `pause`, `resume`, `restart`, `status`. A push query is an async iterator of
rows; a pull query gives all rows. Both take the `Prepared` of a SELECT (its `select` is set). A SELECT on a
stream without EMIT reads to the current end; it is a push query with an end.

Rows are lists of Python values as `sql_types` describes them; `execution/json_values.py` has them as JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from barnabas.sql.metastore.metastore import Change, Metastore
from barnabas.sql.metastore.schemas import Schema
from barnabas.sql.syntax.statements import Statement

LIMIT_REACHED = "Limit Reached"
QUERY_COMPLETED = "Query Completed"


class QueryState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    UNRESPONSIVE = "UNRESPONSIVE"
    STOPPED = "STOPPED"


class SelectKind(StrEnum):
    """`PUSH` goes on until it is closed or its LIMIT is reached; `STREAM_PULL` ends at the topic's current
    end; `PULL` reads the state of a table."""

    PUSH = "PUSH"
    STREAM_PULL = "STREAM_PULL"
    PULL = "PULL"


@dataclass(frozen=True, slots=True)
class TopicNeeded:
    """A topic to create. `replicas` None: the brokers' default."""

    name: str
    partitions: int
    replicas: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaNeeded:
    """A schema to register. `kind` is AVRO, JSON or PROTOBUF."""

    subject: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that can be carried out. `kind` is CREATE, CREATE_AS, INSERT_INTO, INSERT_VALUES, DROP,
    ALTER, TYPE, or SELECT. `work` belongs to the engine.

    `schema` has the columns of a SELECT, or of the source that the statement makes. `drops_topics` are
    deleted with their schemas; `stops` are ids of queries that end; `starts` is the id of the one that
    begins. `entity` is the kind and name for status messages: ("stream", "ORDERS")."""

    statement: Statement
    text: str
    kind: str
    message: str = ""
    schema: Schema = field(default_factory=Schema)
    changes: tuple[Change, ...] = ()
    topics: tuple[TopicNeeded, ...] = ()
    schemas: tuple[SchemaNeeded, ...] = ()
    drops_topics: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    starts: str | None = None
    select: SelectKind | None = None
    limit: int | None = None
    entity: tuple[str, str] = ("", "")
    warnings: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    work: Any = None


@dataclass(frozen=True, slots=True)
class QueryError:
    """An error of a query. `kind` is USER (the data or a function), SYSTEM or UNKNOWN."""

    timestamp_ms: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """`application_id` is its consumer group. `records` and `outputs` count since the start on this node;
    `dropped` counts rows that were left out, by reason. `metrics` are those of the query's tasks on this
    node, by name and part."""

    query_id: str
    state: QueryState
    application_id: str
    errors: tuple[QueryError, ...] = ()
    records: int = 0
    outputs: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    lag: int | None = None
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryStores:
    """The stores of a persistent query: the end of the changelog of each one, by partition. `partitions` are
    those of the topics that the parts of the query with stores read."""

    query_id: str
    application_id: str
    ends: Mapping[str, Mapping[int, int]]
    partitions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a push query. A tombstone has the key's values and null for the others."""

    values: list[Any]
    is_tombstone: bool = False


class RunningSelect(Protocol):
    """Rows as they come. Iterating ends at the LIMIT, at the end of a STREAM_PULL, or after `close`; an error
    of the query is raised as SqlError. `end` says why it ended: LIMIT_REACHED, QUERY_COMPLETED or ""."""

    query_id: str
    schema: Schema
    is_table: bool

    @property
    def end(self) -> str: ...

    def __aiter__(self) -> AsyncIterator[Row]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PullResult:
    schema: Schema
    rows: Sequence[list[Any]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of EXPLAIN. `topology` is in Kafka Streams' words; `road` says for each step whether
    Spark's own operators, Python over Arrow, or the task operator runs it, and why."""

    query_id: str | None
    text: str
    schema: Schema
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    execution_plan: str
    topology: str
    road: str
    properties: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Carries statements out. Methods that wait are coroutines of one event loop."""

    async def prepare(
        self,
        statement: Statement,
        text: str,
        metastore: Metastore,
        properties: Mapping[str, str],
        number: int,
        new_topics: Sequence[TopicNeeded] = (),
    ) -> Prepared:
        """Analyze a statement, without any effect. `new_topics` will exist by the time it is carried out:
        statements before it in the same request create them."""

    async def create_resources(self, prepared: Prepared) -> None: ...

    async def carry_out(self, prepared: Prepared) -> None: ...

    async def insert(self, prepared: Prepared) -> None:
        """Write the row of INSERT … VALUES."""

    async def begin_row(
        self, metastore: Metastore, target: str, row: Mapping[str, Any], properties: Mapping[str, str]
    ) -> Awaitable[None]:
        """Hand over a row given as JSON values by column, as /inserts-stream has it. Rows are written in the
        order in which they are begun; awaiting the result ends when the row is written."""

    def select(self, prepared: Prepared) -> RunningSelect:
        """Start a SELECT of the kinds PUSH and STREAM_PULL."""

    async def pull(self, prepared: Prepared) -> PullResult: ...

    async def explain(self, prepared: Prepared) -> Explanation: ...

    async def stop(self, query_id: str) -> None:
        """End a persistent query for good: its internal topics and its state are deleted."""

    async def pause(self, query_id: str) -> None: ...

    async def resume(self, query_id: str) -> None: ...

    async def restart(self, query_id: str) -> None:
        """Start a query again that failed, where it stopped."""

    def status(self, query_id: str) -> QueryStatus | None: ...

    def statuses(self) -> Sequence[QueryStatus]: ...

    def measured_statuses(self) -> Sequence[QueryStatus]:
        """The statuses of persistent queries, with the metrics of their tasks."""

    async def stores(self) -> Sequence[QueryStores]:
        """Of all persistent queries that have stores, as brokers know them now."""

    def explanation(self, query_id: str) -> Explanation: ...

    async def close(self) -> None:
        """Stop all queries on this node; they continue at the next start."""

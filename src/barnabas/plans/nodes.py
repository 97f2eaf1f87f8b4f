"""Nodes of a plan: one frozen value for each processor of Kafka Streams, with its name and its parents.

In: names (the DSL numbers them as Kafka Streams does), functions, serdes, names of stores. Out: values that
compilers read: the interpreter, the Spark compiler, descriptions. A function is a Python callable or an
`Expression`. Nodes after which records are changes of a table derive from `TableNode`. Does not know: how
anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from barnabas.plans.aggregates import AnyAggregate
from barnabas.plans.expressions import Expression
from barnabas.plans.serdes import Serde
from barnabas.plans.windows import JoinWindows, Windows

Function = Callable[..., Any] | Expression
JoinKind = Literal["inner", "left", "outer"]
Vectorised = Literal["pandas", "arrow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A processor. `parents` are names of nodes."""

    name: str
    parents: tuple[str, ...] = ()

    @property
    def stores(self) -> tuple[str, ...]:
        """Names of the stores that the node reads or writes."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNode(Node):
    """A node that forwards changes (new value, old value). `store` keeps the table, if it is materialized."""

    store: str | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return () if self.store is None else (self.store,)


# ------------------------------------------------------------------------------------------------ edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """Records of topics, or of all topics whose names match `pattern`.

    `timestamp_extractor(record, previous)` overrides the record's own time. `carries_changes`: the topic is a
    repartition topic of a grouped table, its values are changes in Kafka's bytes."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    key_serde: Serde | None = None
    value_serde: Serde | None = None
    timestamp_extractor: Callable[[Any, int], int] | None = None
    offset_reset: str | None = None
    is_internal: bool = False
    is_global: bool = False
    carries_changes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Node):
    """Records to a topic, or to the topic that `topic(key, value, context)` names for each record.

    `partitioner(topic, key, value, partitions)` gives a partition, several, or None for the default."""

    topic: str | Function
    key_serde: Serde | None = None
    value_serde: Serde | None = None
    partitioner: Callable[..., Any] | None = None
    is_internal: bool = False
    partitions: int | None = None
    carries_changes: bool = False


# ---------------------------------------------------------------------------------------- streams, stateless


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """`predicate(key, value)`. `vectorised`: it takes a whole pandas Series or Arrow array of values, and
    gives a truth value for each."""

    predicate: Function
    is_negated: bool = False
    vectorised: Vectorised | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Node):
    """`function(key, value)` gives a pair; as expressions: one for the key, one for the value."""

    function: Callable[..., Any] | tuple[Expression, Expression]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatMap(Node):
    """`function(key, value)` gives pairs."""

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectKey(Node):
    """`function(key, value)` gives the new key."""

    function: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class MapValues(Node):
    """`function(value)` or `function(key, value)`. `vectorised`: it takes and gives a whole pandas Series
    or Arrow array of values instead."""

    function: Function
    takes_key: bool = False
    vectorised: Vectorised | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatMapValues(Node):
    """`function(value)` or `function(key, value)` gives values. An expression gives an array."""

    function: Function
    takes_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restamp(Node):
    """Records get the time that `function(key, value)` gives, in milliseconds; those without one are
    dropped. A null value keeps its time."""

    function: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek(Node):
    """`function(key, value)` for its effect; records go on."""

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreach(Node):
    """`function(key, value)` for its effect; nothing goes on."""

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Node):
    """A record goes to the child of the first predicate that holds. `children[i]` belongs to
    `predicates[i]`; one more child is the default."""

    predicates: tuple[Function, ...]
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassThrough(Node):
    """Records as they come: merged streams, and the two sides of a join brought together."""

    is_merge: bool = True


# ------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource(TableNode):
    """Records become upserts of a table, null values deletes."""

    is_versioned: bool = False
    is_global: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter(TableNode):
    """`is_quiet`: a row that never passed leads to no tombstone, whether or not a node below needs old
    values."""

    predicate: Function
    is_negated: bool = False
    is_quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapValues(TableNode):
    function: Function
    takes_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableToStream(Node):
    """Changes become records: the new values, tombstones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRepartition(Node):
    """`function(key, value)` gives the pair that a grouped table aggregates; changes go to a repartition
    topic. As expressions: one for the key, one for the value."""

    function: Callable[..., Any] | tuple[Expression, Expression]


@dataclass(frozen=True, slots=True)
class Suppression:
    """When a suppressed table emits. `time_limit_ms` None: when the window closes (`grace_ms` after its end).

    A full buffer, by its records or by the bytes of their keys and values, emits early, or fails the task
    where `is_strict`."""

    time_limit_ms: int | None = None
    grace_ms: int = 0
    records_max: int | None = None
    bytes_max: int | None = None
    is_strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress(TableNode):
    suppression: Suppression
    buffer: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.buffer,)


# ------------------------------------------------------------------------------------------- aggregations


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAggregate(TableNode):
    """count, reduce, aggregate of a grouped stream, and of each stream of a cogroup."""

    aggregate: AnyAggregate


EmitStrategy = Literal["update", "close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAggregate(TableNode):
    """The same in windows of any kind. Keys after it are `Windowed`. `on_close(key, value)` is called for
    each window that closes."""

    aggregate: AnyAggregate
    windows: Windows
    emit: EmitStrategy = "update"
    on_close: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAggregate(TableNode):
    """count, reduce, aggregate of a grouped table: the old value is subtracted, the new one is added."""

    aggregate: AnyAggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePassThrough(TableNode):
    """The results of a cogroup brought together. `store` is that of the aggregations before it: joins look
    rows up there."""

    @property
    def stores(self) -> tuple[str, ...]:
        return ()


# ------------------------------------------------------------------------------------------------- joins


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindowed(Node):
    """Keeps the records of one side of a stream-stream join."""

    store: str
    windows: JoinWindows

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStreamJoin(Node):
    """One side of a stream-stream join. `joiner(left, right)`, or `joiner(key, left, right)` if it takes
    the key.

    `shared` names the sides' common clock; `waiting` is the store of records without a match. `is_eager`:
    there is no such store, a record without a match comes out at once, and again with each later match."""

    is_left: bool
    kind: JoinKind
    windows: JoinWindows
    joiner: Function
    other_store: str
    shared: str
    waiting: str | None = None
    takes_key: bool = False
    is_eager: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.other_store,) if self.waiting is None else (self.other_store, self.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSelfJoin(Node):
    """A stream joined with itself."""

    windows: JoinWindows
    joiner: Function
    store: str
    takes_key: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTableJoin(Node):
    """Stream records look up a table. `table` is the node of the table; `buffer` and `grace_ms` belong
    together."""

    table: str
    kind: JoinKind
    joiner: Function
    table_stores: tuple[str, ...] = ()
    takes_key: bool = False
    buffer: str | None = None
    grace_ms: int | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return (*self.table_stores, *(() if self.buffer is None else (self.buffer,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGlobalJoin(Node):
    """Stream records look up a global table under `key_selector(key, value)`."""

    table_store: str
    kind: JoinKind
    key_selector: Function
    joiner: Function
    takes_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTableJoin(TableNode):
    """One side of a table-table join. `this` and `other` are the nodes of the two tables."""

    this: str
    other: str
    is_left: bool
    kind: JoinKind
    joiner: Function
    takes_key: bool = False
    other_stores: tuple[str, ...] = ()

    @property
    def stores(self) -> tuple[str, ...]:
        return self.other_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoinMerge(TableNode):
    """The results of both sides of a table-table join: one table."""

    sides: tuple[str, str]


# -------------------------------------------------------------------------------------- foreign-key joins


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionSend(Node):
    """A row of the left table subscribes to its foreign key, `foreign_key(value)` or `(key, value)`; it
    leaves the key that it had before."""

    foreign_key: Function
    takes_key: bool
    is_left_join: bool
    foreign_key_serde: Serde | None
    key_serde: Serde | None
    value_serde: Serde | None
    subscription_topic: str
    foreign_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionReceive(Node):
    """Keeps subscriptions, by foreign key and key."""

    store: str
    foreign_key_serde: Serde | None
    key_serde: Serde | None
    subscription_topic: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionJoin(Node):
    """A new subscription is told what the right table has."""

    foreign_table: str
    table_stores: tuple[str, ...] = ()

    @property
    def stores(self) -> tuple[str, ...]:
        return self.table_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTableJoin(Node):
    """A change of the right table is told to everybody who subscribed to its key."""

    store: str
    foreign_key_serde: Serde | None
    key_serde: Serde | None
    subscription_topic: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseJoin(Node):
    """A response is joined with the left row, unless the row has changed since it subscribed."""

    left_table: str
    kind: JoinKind
    joiner: Function
    takes_key: bool
    value_serde: Serde | None
    foreign_topic: str
    table_stores: tuple[str, ...] = ()

    @property
    def stores(self) -> tuple[str, ...]:
        return self.table_stores


# -------------------------------------------------------------------------------------------- processors


@dataclass(frozen=True, slots=True, kw_only=True)
class Process(Node):
    """A processor of the user, made by `supplier()`: it has `init(context)`, `process(record)` and
    `close()`."""

    supplier: Callable[[], Any]
    connected: tuple[str, ...] = field(default=())
    keeps_key: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        return self.connected

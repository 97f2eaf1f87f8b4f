"""KTable, GlobalKTable and grouped tables: each method adds nodes to the plan.

In: functions of the user, expressions, names, formats. Out: the next table or stream. Wrong arguments are
refused here, where the topology is built. Does not know: how nodes run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from barnabas.plans import nodes as n
from barnabas.plans.aggregates import Aggregate, AnyAggregate, BuiltIn, BuiltIns, Reduce
from barnabas.plans.expressions import Expression
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.type_variables import K2, V2, A, K, R, V
from barnabas.plans.windows import SessionWindows, Windows
from barnabas.streams.dsl.graph import Graph, checked
from barnabas.streams.dsl.joinable_tables import JoinableTable
from barnabas.streams.dsl.signatures import OfBoth, OfValue
from barnabas.streams.serdes.formats import LONG, Form, serde_of

if TYPE_CHECKING:
    from barnabas.streams.dsl.streams import KStream


@dataclass(frozen=True)
class KTable(JoinableTable[K, V]):
    """A table: the last value of each key, as changes."""

    graph: Graph
    node: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    sources: tuple[str, ...] = ()
    store: str | None = None
    windows: Windows | None = None

    def filter(
        self,
        predicate: OfBoth[K, V, object],
        *,
        store: str | None = None,
        name: str | None = None,
        is_negated: bool = False,
        is_quiet: bool = False,
    ) -> KTable[K, V]:
        """Rows for which `predicate(key, value)` holds; others are deleted. `is_quiet`: rows that never
        passed lead to no tombstone."""
        checked(predicate, "the predicate of filter")
        node = n.TableFilter(
            name=self.graph.name("KTABLE-FILTER-", name),
            parents=(self.node,),
            predicate=predicate,
            is_negated=is_negated,
            is_quiet=is_quiet,
            store=self._keep(store, self.value_serde),
        )
        return replace(self, node=self.graph.add(node).name, store=store)

    def filter_not(
        self, predicate: OfBoth[K, V, object], *, store: str | None = None, name: str | None = None
    ) -> KTable[K, V]:
        return self.filter(predicate, store=store, name=name, is_negated=True)

    @overload
    def map_values(
        self,
        function: OfValue[V, R],
        *,
        value: Form[R] | str | None = None,
        with_key: Literal[False] = False,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def map_values(
        self,
        function: OfBoth[K, V, R],
        *,
        value: Form[R] | str | None = None,
        with_key: Literal[True],
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    def map_values(
        self,
        function: Any,
        *,
        value: Any = None,
        with_key: bool = False,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, Any]:
        checked(function, "the function of map_values")
        serde = None if value is None else serde_of(value)
        node = n.TableMapValues(
            name=self.graph.name("KTABLE-MAPVALUES-", name),
            parents=(self.node,),
            function=function,
            takes_key=with_key,
            store=self._keep(store, serde or self.graph.default_serde),
        )
        return replace(self, node=self.graph.add(node).name, store=store, value_serde=serde)

    def _keep(self, store: str | None, value: Serde[Any] | None) -> str | None:
        """Add the store of a table that is materialized by name."""
        if store is None:
            return None
        if self.windows is not None:
            raise TypeError("a windowed table cannot be materialized a second time")
        return self.graph.add_store(StoreSpec(store, StoreKind.TIMESTAMPED, self.key_serde, value))

    def to_stream(self, *, name: str | None = None) -> KStream[K, V]:
        """The changes as a KStream."""
        node = n.TableToStream(name=self.graph.name("KTABLE-TOSTREAM-", name), parents=(self.node,))
        self.graph.add(node)
        stream: KStream[K, V] = self.graph.make_stream(
            self.graph, node.name, self.key_serde, self.value_serde, self.sources
        )
        return stream

    def group_by(
        self,
        function: Callable[[K, V], tuple[K2, V2]] | tuple[Expression, Expression],
        *,
        key: Form[K2] | str | None = None,
        value: Form[V2] | str | None = None,
    ) -> GroupedTable[K2, V2]:
        """`function(key, value)` gives the new key and value."""
        checked(function, "the function of group_by")
        node = n.TableRepartition(
            name=self.graph.name("KTABLE-SELECT-"), parents=(self.node,), function=function
        )
        self.graph.add(node)
        default = self.graph.default_serde
        return GroupedTable(
            self.graph,
            node.name,
            default if key is None else serde_of(key),
            default if value is None else serde_of(value),
        )

    def suppress(self, suppression: n.Suppression, *, name: str | None = None) -> KTable[K, V]:
        """Hold results back: `until_window_closes()` or `until_time_limit(ms)`."""
        graph = self.graph
        if suppression.time_limit_ms is None:
            if self.windows is None or not hasattr(self.windows, "grace_ms"):
                raise TypeError("until_window_closes() needs a windowed table; use until_time_limit() here")
            gap = self.windows.gap_ms if isinstance(self.windows, SessionWindows) else 0
            suppression = replace(suppression, grace_ms=self.windows.grace_ms + gap)
        node_name = graph.name("KTABLE-SUPPRESS-", name)
        buffer = graph.store_name("KTABLE-SUPPRESS-")
        value = self.value_serde or graph.default_serde
        graph.add_store(StoreSpec(buffer, StoreKind.SUPPRESS, self.key_serde, value))
        node = n.Suppress(name=node_name, parents=(self.node,), suppression=suppression, buffer=buffer)
        return replace(self, node=graph.add(node).name, store=None)


@dataclass(frozen=True)
class GlobalKTable(Generic[K, V]):
    """A table that every task has whole."""

    graph: Graph
    store: str


@dataclass(frozen=True)
class GroupedTable(Generic[K, V]):
    """A table grouped by another key: the old value leaves its group before the new one enters."""

    graph: Graph
    node: str
    key_serde: Serde[Any]
    value_serde: Serde[Any]

    def count(self, *, store: str | None = None) -> KTable[K, int]:
        return self._add(BuiltIns(((None, BuiltIn("count")),)), LONG, store, "AGGREGATE")

    def reduce(
        self, adder: Callable[[V, V], V], subtractor: Callable[[V, V], V], *, store: str | None = None
    ) -> KTable[K, V]:
        checked(adder, "the adder of reduce"), checked(subtractor, "the subtractor of reduce")
        return self._add(Reduce(adder, subtractor), self.value_serde, store, "REDUCE")

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        value: Form[A] | str | None = None,
        store: str | None = None,
    ) -> KTable[K, A]:
        checked(subtractor, "the subtractor of aggregate")
        serde = self.graph.default_serde if value is None else serde_of(value)
        return self._add(Aggregate(initializer, adder, subtractor), serde, store, "AGGREGATE")

    def aggregate_with(
        self, aggregate: AnyAggregate, *, value: Form[A] | str | None = None, store: str | None = None
    ) -> KTable[K, A]:
        """An aggregate as a value: functions in one object, or typed functions of another part."""
        serde = self.graph.default_serde if value is None else serde_of(value)
        return self._add(aggregate, serde, store, "AGGREGATE")

    def _add(
        self, aggregate: AnyAggregate, serde: Serde[Any], store: str | None, kind: str
    ) -> KTable[K, Any]:
        graph = self.graph
        kept = graph.store_name("KTABLE-AGGREGATE-", store)
        sink, source = graph.name("KSTREAM-SINK-"), graph.name("KSTREAM-SOURCE-")
        function = graph.name(f"KTABLE-{kind}-")
        topic = f"{graph.application_id}-{kept}-repartition"
        both: dict[str, Any] = {"key_serde": self.key_serde, "value_serde": self.value_serde}
        both |= {"is_internal": True, "carries_changes": True}
        graph.add(n.Sink(name=sink, parents=(self.node,), topic=topic, **both))
        graph.add(n.Source(name=source, topics=(topic,), **both))
        graph.add_store(StoreSpec(kept, StoreKind.TIMESTAMPED, self.key_serde, serde))
        graph.add(n.TableAggregate(name=function, parents=(source,), store=kept, aggregate=aggregate))
        return KTable(graph, function, self.key_serde, serde, (source,), kept)

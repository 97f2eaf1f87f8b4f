"""KTable, GlobalKTable and grouped tables: each method adds nodes to the plan.

In: functions of the user, expressions, names, formats. Out: the next table or stream. Wrong arguments are
refused here, where the topology is built. Does not know: how nodes run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.aggregates import Aggregate, AnyAggregate, BuiltIn, BuiltIns, Reduce
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import SessionWindows, Windows
from barnabas.streams.dsl.graph import Graph, checked
from barnabas.streams.serdes.formats import LONG, serde_of


@dataclass(frozen=True)
class KTable:
    """A table: the last value of each key, as changes."""

    graph: Graph
    node: str
    key_serde: Serde | None
    value_serde: Serde | None
    sources: tuple[str, ...] = ()
    store: str | None = None
    windows: Windows | None = None

    def filter(
        self,
        predicate: n.Function,
        *,
        store: str | None = None,
        name: str | None = None,
        is_negated: bool = False,
        is_quiet: bool = False,
    ) -> KTable:
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
        self, predicate: n.Function, *, store: str | None = None, name: str | None = None
    ) -> KTable:
        return self.filter(predicate, store=store, name=name, is_negated=True)

    def map_values(
        self,
        function: n.Function,
        *,
        value: Any = None,
        with_key: bool = False,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
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

    def _keep(self, store: str | None, value: Serde | None) -> str | None:
        """Add the store of a table that is materialized by name."""
        if store is None:
            return None
        if self.windows is not None:
            raise TypeError("a windowed table cannot be materialized a second time")
        return self.graph.add_store(StoreSpec(store, StoreKind.TIMESTAMPED, self.key_serde, value))

    def join(self, other: KTable, joiner: n.Function, *, foreign_key: Any = None, **more: Any) -> KTable:
        """Join by key, or with the row whose key `foreign_key(value)` names."""
        return self._join(other, joiner, "inner", foreign_key, **more)

    def left_join(self, other: KTable, joiner: n.Function, *, foreign_key: Any = None, **more: Any) -> KTable:
        return self._join(other, joiner, "left", foreign_key, **more)

    def outer_join(self, other: KTable, joiner: n.Function, **more: Any) -> KTable:
        return self._join(other, joiner, "outer", None, **more)

    def _join(
        self, other: Any, joiner: n.Function, kind: n.JoinKind, foreign_key: Any, **more: Any
    ) -> KTable:
        from barnabas.streams.dsl.table_joins import join_by_foreign_key, join_tables

        checked(joiner, "the joiner")
        if not isinstance(other, KTable):
            raise TypeError(f"a table is joined with a table, not with {type(other).__name__}")
        if foreign_key is None:
            joined: KTable = join_tables(self, other, joiner, kind, **more)
        else:
            checked(foreign_key, "the foreign key")
            joined = join_by_foreign_key(self, other, foreign_key, joiner, kind, **more)
        return joined

    def to_stream(self, *, name: str | None = None) -> Any:
        """The changes as a KStream."""
        node = n.TableToStream(name=self.graph.name("KTABLE-TOSTREAM-", name), parents=(self.node,))
        self.graph.add(node)
        return self.graph.make_stream(self.graph, node.name, self.key_serde, self.value_serde, self.sources)

    def group_by(self, function: Any, *, key: Any = None, value: Any = None) -> GroupedTable:
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

    def suppress(self, suppression: n.Suppression, *, name: str | None = None) -> KTable:
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
class GlobalKTable:
    """A table that every task has whole."""

    graph: Graph
    store: str


@dataclass(frozen=True)
class GroupedTable:
    """A table grouped by another key: the old value leaves its group before the new one enters."""

    graph: Graph
    node: str
    key_serde: Serde
    value_serde: Serde

    def count(self, *, store: str | None = None) -> KTable:
        return self._add(BuiltIns(((None, BuiltIn("count")),)), LONG, store, "AGGREGATE")

    def reduce(self, adder: Any, subtractor: Any, *, store: str | None = None) -> KTable:
        checked(adder, "the adder of reduce"), checked(subtractor, "the subtractor of reduce")
        return self._add(Reduce(adder, subtractor), self.value_serde, store, "REDUCE")

    def aggregate(
        self, initializer: Any, adder: Any, subtractor: Any, *, value: Any = None, store: str | None = None
    ) -> KTable:
        checked(subtractor, "the subtractor of aggregate")
        serde = self.graph.default_serde if value is None else serde_of(value)
        return self._add(Aggregate(initializer, adder, subtractor), serde, store, "AGGREGATE")

    def aggregate_with(
        self, aggregate: AnyAggregate, *, value: Any = None, store: str | None = None
    ) -> KTable:
        """An aggregate as a value: functions in one object, or typed functions of another part."""
        serde = self.graph.default_serde if value is None else serde_of(value)
        return self._add(aggregate, serde, store, "AGGREGATE")

    def _add(self, aggregate: AnyAggregate, serde: Serde, store: str | None, kind: str) -> KTable:
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

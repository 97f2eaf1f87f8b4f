"""Cogroups: several grouped streams in one aggregation, each with an adder of its own.

In: grouped streams with the same kind of keys. Out: a table; there is no order between the streams. Does not
know: how nodes run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, cast

from barnabas.plans import nodes as n
from barnabas.plans.aggregates import Aggregate
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.type_variables import V2, K, TableKey, V
from barnabas.plans.windows import SessionWindows, Windowed, Windows
from barnabas.streams.dsl.graph import checked
from barnabas.streams.dsl.tables import KTable
from barnabas.streams.dsl.window_stores import window_store
from barnabas.streams.serdes.formats import Form, WindowedSerde, serde_of

if TYPE_CHECKING:
    from barnabas.streams.dsl.groups import GroupedStream


@dataclass(frozen=True)
class CogroupedStream(Generic[K, V, TableKey]):
    """Grouped streams with their adders, perhaps in windows. `V` is the type of the aggregate."""

    parts: tuple[tuple[GroupedStream[K, Any, K], Any], ...] = ()
    windows: Windows | None = None
    emit: n.EmitStrategy = "update"

    def cogroup(
        self, grouped: GroupedStream[K, V2, K], adder: Callable[[K, V2, V], V]
    ) -> CogroupedStream[K, V, TableKey]:
        """One more stream: `adder(key, value, aggregate)`."""
        checked(adder, "the adder of cogroup")
        if grouped.windows is not None:
            raise TypeError("windows belong to the cogroup: cogroup(…).windowed_by(…)")
        return replace(self, parts=(*self.parts, (grouped, adder)))

    def windowed_by(self, windows: Windows) -> CogroupedStream[K, V, Windowed[K]]:
        return cast("CogroupedStream[K, V, Windowed[K]]", replace(self, windows=windows))

    def final(self) -> CogroupedStream[K, V, TableKey]:
        """One result a window, when it closes."""
        return replace(self, emit="close")

    def aggregate(
        self,
        initializer: Callable[[], V],
        merger: Callable[[K, V, V], V] | None = None,
        *,
        value: Form[V] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[TableKey, V]:
        """The table of all streams. Sessions need `merger(key, one, other)`."""
        checked(initializer, "the initializer of aggregate")
        if isinstance(self.windows, SessionWindows):
            checked(merger, "the merger of a session aggregate")
        graph = self.parts[0][0].stream.graph
        serde = graph.default_serde if value is None else serde_of(value)
        kept = graph.store_name("COGROUPKSTREAM-AGGREGATE-", store)
        streams = []
        unnamed = 0  # a repartition topic has the name of the store; a second one needs another
        for grouped, _ in self.parts:
            prefix = grouped.name or (kept if unnamed == 0 else f"{kept}-{unnamed}")
            unnamed += grouped.stream.needs_repartition and grouped.name is None
            streams.append(grouped.stream.partitioned(prefix, prefix))
        key_serde = streams[0]._key(None)
        if self.windows is None:
            graph.add_store(StoreSpec(kept, StoreKind.TIMESTAMPED, key_serde, serde))
        else:
            graph.add_store(window_store(kept, self.windows, key_serde, serde))
        nodes = []
        for at, (stream, (_, adder)) in enumerate(zip(streams, self.parts, strict=True)):
            given = graph.name(
                "COGROUPKSTREAM-AGGREGATE-", None if name is None else f"{name}-cogroup-agg-{at}"
            )
            common: dict[str, Any] = {"name": given, "parents": (stream.node,), "store": kept}
            common["aggregate"] = Aggregate(initializer, adder, None, merger)
            if self.windows is None:
                nodes.append(graph.add(n.StreamAggregate(**common)).name)
            else:
                node = n.WindowAggregate(**common, windows=self.windows, emit=self.emit)
                nodes.append(graph.add(node).name)
        merged = graph.name("COGROUPKSTREAM-MERGE-", None if name is None else f"{name}-cogroup-merge")
        graph.add(n.TablePassThrough(name=merged, parents=tuple(nodes), store=kept))
        sources = tuple(source for stream in streams for source in stream.sources)
        graph.copartitioned.append(frozenset(sources))
        keys = key_serde if self.windows is None else WindowedSerde(key_serde, self.windows)
        return KTable(graph, merged, keys, serde, sources, kept, self.windows)

"""Grouped streams: windows and aggregations; each aggregation adds nodes to the plan.

In: functions of the user, built-in aggregates, formats. Out: tables. Does not know: how nodes run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from barnabas.plans import nodes as n
from barnabas.plans.aggregates import Aggregate, AnyAggregate, BuiltIn, BuiltIns, Reduce
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.type_variables import K2, V2, A, K, TableKey, V
from barnabas.plans.windows import SessionWindows, Windowed, Windows, milliseconds
from barnabas.streams.dsl.cogroups import CogroupedStream
from barnabas.streams.dsl.graph import checked
from barnabas.streams.dsl.tables import KTable
from barnabas.streams.dsl.window_stores import window_store
from barnabas.streams.serdes.formats import LONG, Form, WindowedSerde, serde_of

if TYPE_CHECKING:
    from barnabas.streams.dsl.streams import KStream


@dataclass(frozen=True)
class GroupedStream(Generic[K, V, TableKey]):
    """A stream grouped by its key, perhaps in windows. `TableKey` is the type of the keys of its tables."""

    stream: KStream[K, V]
    name: str | None = None
    windows: Windows | None = None
    emit: n.EmitStrategy = "update"
    close_hook: Callable[[Any, Any], Any] | None = None
    retention_ms: int | None = None

    def windowed_by(
        self, windows: Windows, *, retention_ms: int | timedelta | None = None
    ) -> GroupedStream[K, V, Windowed[K]]:
        """Group by windows too. Lookups find a window for `retention_ms`, by default until it is closed."""
        kept_ms: int | None = milliseconds(retention_ms)
        if kept_ms is not None and kept_ms < windows.retention_ms:
            raise ValueError(
                f"retention_ms is {kept_ms}; the windows are needed for {windows.retention_ms} ms"
            )
        windowed = replace(self, windows=windows, retention_ms=kept_ms)
        return cast("GroupedStream[K, V, Windowed[K]]", windowed)

    def final(self) -> GroupedStream[K, V, TableKey]:
        """One result a window, when it closes."""
        return replace(self, emit="close")

    def current(self) -> GroupedStream[K, V, TableKey]:
        """A result for each update: the default."""
        return replace(self, emit="update")

    def on_close(self, hook: Callable[[TableKey, Any], Any]) -> GroupedStream[K, V, TableKey]:
        """Call `hook(windowed key, value)` for each window that closes; results come as with `final()`."""
        return replace(self, emit="close", close_hook=checked(hook, "the hook of on_close"))

    def cogroup(self: GroupedStream[K2, V2, K2], adder: Callable[[K2, V2, A], A]) -> CogroupedStream[K2, A]:
        """Aggregate this stream together with others: `cogroup(adder).cogroup(other, adder).aggregate(…)`."""
        return CogroupedStream[K2, A]().cogroup(self, adder)

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable[TableKey, int]:
        return self._add(BuiltIns(((None, BuiltIn("count")),)), LONG, store, name, "AGGREGATE")

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | None = None, name: str | None = None
    ) -> KTable[TableKey, V]:
        checked(reducer, "the reducer")
        return self._add(Reduce(reducer), self.stream._value(None), store, name, "REDUCE")

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A] | None = None,
        *,
        value: Form[A] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[TableKey, A]: ...

    @overload
    def aggregate(
        self,
        *,
        value: Form[A] | str | None = None,
        store: str | None = None,
        name: str | None = None,
        **built_ins: BuiltIn,
    ) -> KTable[TableKey, A]: ...

    def aggregate(
        self,
        initializer: Any = None,
        adder: Any = None,
        merger: Any = None,
        *,
        value: Any = None,
        store: str | None = None,
        name: str | None = None,
        **built_ins: BuiltIn,
    ) -> KTable[TableKey, Any]:
        """Functions of the user, or built-in ones: `aggregate(total=F.sum("amount"), n=F.count())`."""
        serde = self.stream.graph.default_serde if value is None else serde_of(value)
        if built_ins:
            return self._add(BuiltIns(tuple(built_ins.items())), serde, store, name, "AGGREGATE")
        checked(initializer, "the initializer of aggregate")
        checked(adder, "the adder of aggregate")
        if isinstance(self.windows, SessionWindows):
            checked(merger, "the merger of a session aggregate")
        return self._add(Aggregate(initializer, adder, None, merger), serde, store, name, "AGGREGATE")

    def aggregate_with(
        self,
        aggregate: AnyAggregate,
        *,
        value: Form[A] | str | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[TableKey, A]:
        """An aggregate as a value: functions in one object, or typed functions of another part."""
        serde = self.stream.graph.default_serde if value is None else serde_of(value)
        return self._add(aggregate, serde, store, name, "AGGREGATE")

    def _add(
        self, aggregate: AnyAggregate, serde: Serde, store: str | None, name: str | None, kind: str
    ) -> KTable[TableKey, Any]:
        graph = self.stream.graph
        kept = graph.store_name(f"KSTREAM-{kind}-", store)
        function = graph.name(f"KSTREAM-{kind}-", name)
        stream = self.stream.partitioned(self.name or kept)
        key_serde = stream._key(None)
        given: dict[str, Any] = {"name": function, "parents": (stream.node,), "store": kept}
        windows = self.windows
        if windows is None:
            graph.add_store(StoreSpec(kept, StoreKind.TIMESTAMPED, key_serde, serde))
            graph.add(n.StreamAggregate(**given, aggregate=aggregate))
            return KTable(graph, function, key_serde, serde, stream.sources, kept)
        graph.add_store(window_store(kept, windows, key_serde, serde, self.retention_ms))
        graph.add(
            n.WindowAggregate(
                **given, aggregate=aggregate, windows=windows, emit=self.emit, on_close=self.close_hook
            )
        )
        keys = WindowedSerde(key_serde, windows)
        return KTable(graph, function, keys, serde, stream.sources, kept, windows)

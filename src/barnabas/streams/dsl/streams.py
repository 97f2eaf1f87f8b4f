"""KStream and grouped streams: each method adds nodes to the plan.

In: functions of the user, expressions, names, formats. Out: the next stream or table. Wrong arguments are
refused here, where the topology is built. Does not know: how nodes run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.aggregates import Aggregate, AnyAggregate, BuiltIn, BuiltIns, Reduce
from barnabas.plans.expressions import key as key_
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import JoinWindows, SessionWindows, Windows, milliseconds
from barnabas.streams.dsl.cogroups import CogroupedStream
from barnabas.streams.dsl.graph import Graph, checked
from barnabas.streams.dsl.tables import KTable
from barnabas.streams.dsl.window_stores import window_store
from barnabas.streams.serdes.formats import LONG, WindowedSerde, serde_of


@dataclass(frozen=True)
class KStream:
    """A stream of records. Methods return new streams; this one stays as it is."""

    graph: Graph
    node: str
    key_serde: Serde | None
    value_serde: Serde | None
    sources: tuple[str, ...] = ()
    needs_repartition: bool = False

    def _then(self, node: n.Node, **changes: Any) -> KStream:
        self.graph.add(node)
        return replace(self, node=node.name, **changes)

    def _name(self, kind: str, name: str | None) -> dict[str, Any]:
        return {"name": self.graph.name(f"KSTREAM-{kind}-", name), "parents": (self.node,)}

    def filter(self, predicate: n.Function, *, name: str | None = None) -> KStream:
        """Records for which `predicate(key, value)` holds. A `pandas_function` or `arrow_function` gets a
        batch of values, and gives a truth value for each."""
        return self._filter(predicate, "the predicate of filter", name, False)

    def _filter(self, predicate: n.Function, what: str, name: str | None, is_negated: bool) -> KStream:
        checked(predicate, what, takes_batches=True)
        node = n.Filter(
            **self._name("FILTER", name),
            predicate=predicate,
            is_negated=is_negated,
            vectorised=getattr(predicate, "vectorised", None),
        )
        return self._then(node)

    def filter_not(self, predicate: n.Function, *, name: str | None = None) -> KStream:
        return self._filter(predicate, "the predicate of filter_not", name, True)

    def map(self, function: Any, *, key: Any = None, value: Any = None, name: str | None = None) -> KStream:
        """`function(key, value)` gives a pair. `key` and `value` are the formats of the new ones."""
        checked(function, "the function of map")
        node = n.Map(**self._name("MAP", name), function=function)
        return self._then(
            node, key_serde=self._serde(key), value_serde=self._serde(value), needs_repartition=True
        )

    def map_values(
        self, function: n.Function, *, value: Any = None, with_key: bool = False, name: str | None = None
    ) -> KStream:
        """`function(value)`, or `function(key, value)` with the key. A `pandas_function` or `arrow_function`
        gets a batch of values, without keys."""
        checked(function, "the function of map_values", takes_batches=not with_key)
        node = n.MapValues(
            **self._name("MAPVALUES", name),
            function=function,
            takes_key=with_key,
            vectorised=getattr(function, "vectorised", None),
        )
        return self._then(node, value_serde=self._serde(value))

    def flat_map(
        self, function: Any, *, key: Any = None, value: Any = None, name: str | None = None
    ) -> KStream:
        checked(function, "the function of flat_map")
        node = n.FlatMap(**self._name("FLATMAP", name), function=function)
        return self._then(
            node, key_serde=self._serde(key), value_serde=self._serde(value), needs_repartition=True
        )

    def flat_map_values(
        self, function: n.Function, *, value: Any = None, with_key: bool = False, name: str | None = None
    ) -> KStream:
        checked(function, "the function of flat_map_values")
        node = n.FlatMapValues(**self._name("FLATMAPVALUES", name), function=function, takes_key=with_key)
        return self._then(node, value_serde=self._serde(value))

    def select_key(self, function: n.Function, *, key: Any = None, name: str | None = None) -> KStream:
        checked(function, "the function of select_key")
        node = n.SelectKey(**self._name("KEY-SELECT", name), function=function)
        return self._then(node, key_serde=self._serde(key), needs_repartition=True)

    def restamp(self, function: n.Function, *, name: str | None = None) -> KStream:
        """Records get the time that `function(key, value)` gives; those without one are dropped."""
        checked(function, "the function of restamp")
        return self._then(n.Restamp(**self._name("RESTAMP", name), function=function))

    def peek(self, function: Callable[[Any, Any], Any], *, name: str | None = None) -> KStream:
        checked(function, "the function of peek")
        return self._then(n.Peek(**self._name("PEEK", name), function=function))

    def foreach(self, function: Callable[[Any, Any], Any], *, name: str | None = None) -> None:
        checked(function, "the function of foreach")
        self.graph.add(n.Foreach(**self._name("FOREACH", name), function=function))

    def merge(self, other: KStream, *, name: str | None = None) -> KStream:
        node = n.PassThrough(
            name=self.graph.name("KSTREAM-MERGE-", name), parents=(self.node, other.node), is_merge=True
        )
        return self._then(
            node,
            sources=self.sources + other.sources,
            needs_repartition=self.needs_repartition or other.needs_repartition,
        )

    def split(
        self, branches: Mapping[str, n.Function], *, default: str | None = None, name: str | None = None
    ) -> dict[str, KStream]:
        """One stream for each predicate, by name; a record goes to the first that holds, else to the
        default."""
        given = self._name("BRANCH", name)
        wanted = [*branches, *([default] if default is not None else [])]
        prefix = f"{given['name']}-" if name is None else name
        children = tuple(self.graph.name("", f"{prefix}{each}") for each in wanted)
        predicates = tuple(checked(each, "a predicate of split") for each in branches.values())
        self.graph.add(n.Branch(**given, predicates=predicates, children=children))
        streams = {}
        for each, child in zip(wanted, children, strict=True):
            streams[each] = self._then(n.PassThrough(name=child, parents=(given["name"],), is_merge=False))
        return streams

    def to(
        self, topic: str | n.Function, *, key: Any = None, value: Any = None, name: str | None = None
    ) -> None:
        """Write to a topic, or to the topic that `topic(key, value)` names."""
        if not isinstance(topic, str):
            checked(topic, "the topic of to")
        self.graph.add(
            n.Sink(
                **self._name("SINK", name),
                topic=topic,
                key_serde=self._key(key),
                value_serde=self._value(value),
            )
        )

    def through(self, topic: str, *, key: Any = None, value: Any = None) -> KStream:
        """Write to a topic that exists, and go on with what is read from it."""
        self.to(topic, key=key, value=value)
        return self._read(topic, self._key(key), self._value(value), False)

    def repartition(
        self, name: str | None = None, *, partitions: int | None = None, key: Any = None, value: Any = None
    ) -> KStream:
        """Go through a topic of the application, so that records of a key are in one partition."""
        prefix = name or self.graph.name("KSTREAM-REPARTITION-")
        return self._through_internal(prefix, self._key(key), self._value(value), partitions, name)

    def _through_internal(
        self,
        prefix: str,
        key: Serde | None,
        value: Serde | None,
        partitions: int | None = None,
        name: str | None = None,
    ) -> KStream:
        graph = self.graph
        sink = graph.name("KSTREAM-SINK-", None if name is None else f"{name}-repartition-sink")
        keyed = graph.name("KSTREAM-FILTER-", None if name is None else f"{name}-repartition-filter")
        topic = f"{graph.application_id}-{prefix}-repartition"
        graph.add(n.Filter(name=keyed, parents=(self.node,), predicate=key_().is_not_null()))
        graph.add(
            n.Sink(
                name=sink,
                parents=(keyed,),
                topic=topic,
                key_serde=key,
                value_serde=value,
                is_internal=True,
                partitions=partitions,
            )
        )
        return self._read(topic, key, value, True, None if name is None else f"{name}-repartition-source")

    def _read(
        self,
        topic: str,
        key: Serde | None,
        value: Serde | None,
        is_internal: bool,
        name: str | None = None,
    ) -> KStream:
        source = self.graph.add(
            n.Source(
                name=self.graph.name("KSTREAM-SOURCE-", name),
                topics=(topic,),
                key_serde=key,
                value_serde=value,
                is_internal=is_internal,
            )
        )
        return KStream(self.graph, source.name, key, value, (source.name,))

    def partitioned(self, prefix: str, name: str | None = None) -> KStream:
        """This stream, through a repartition topic if its keys have changed."""
        if not self.needs_repartition:
            return self
        return self._through_internal(prefix, self._key(None), self._value(None), name=name)

    def group_by_key(self, *, key: Any = None, value: Any = None, name: str | None = None) -> GroupedStream:
        return GroupedStream(replace(self, key_serde=self._key(key), value_serde=self._value(value)), name)

    def group_by(
        self, function: n.Function, *, key: Any = None, value: Any = None, name: str | None = None
    ) -> GroupedStream:
        """Group by a new key; a null one drops the record."""
        return self.select_key(function, key=key).group_by_key(value=value, name=name)

    def to_table(
        self, *, store: str | None = None, history_ms: int | None = None, name: str | None = None
    ) -> KTable:
        """The last value of each key; a null value deletes. `history_ms`: as in `StreamsBuilder.table`."""
        graph = self.graph
        kept = graph.store_name("KSTREAM-TOTABLE-", store)
        node_name = graph.name("KSTREAM-TOTABLE-", name)
        stream = self.partitioned(node_name)
        kind = StoreKind.TIMESTAMPED if history_ms is None else StoreKind.VERSIONED
        spec = StoreSpec(kept, kind, stream._key(None), stream._value(None), history_ms=history_ms or 0)
        graph.add_store(spec)
        is_versioned = history_ms is not None
        graph.add(
            n.TableSource(name=node_name, parents=(stream.node,), store=kept, is_versioned=is_versioned)
        )
        return KTable(graph, node_name, spec.key_serde, spec.value_serde, stream.sources, kept)

    def join(
        self, other: Any, joiner: n.Function, windows: JoinWindows | None = None, **more: Any
    ) -> KStream:
        return self._join(other, joiner, "inner", windows, **more)

    def left_join(
        self, other: Any, joiner: n.Function, windows: JoinWindows | None = None, **more: Any
    ) -> KStream:
        return self._join(other, joiner, "left", windows, **more)

    def outer_join(self, other: KStream, joiner: n.Function, windows: JoinWindows, **more: Any) -> KStream:
        return self._join(other, joiner, "outer", windows, **more)

    def _join(self, other: Any, joiner: n.Function, kind: n.JoinKind, windows: Any, **more: Any) -> KStream:
        from barnabas.streams.dsl.joins import join_stream

        checked(joiner, "the joiner")
        joined: KStream = join_stream(self, other, joiner, kind, windows, **more)
        return joined

    def process(
        self,
        supplier: Callable[[], Any],
        *stores: StoreSpec | str,
        keeps_key: bool = False,
        name: str | None = None,
    ) -> KStream:
        """Records go to a processor of the user: an object with `init(context)` and `process(record)`.
        `stores` are new ones, or names of stores that the topology has; those of global tables need not be
        named."""
        checked(supplier, "the supplier of process")
        for store in stores:
            if isinstance(store, StoreSpec) and store.name not in self.graph.stores:
                self.graph.add_store(store)
        names = tuple(store if isinstance(store, str) else store.name for store in stores)
        for each in names:
            if each not in self.graph.stores:
                known = ", ".join(self.graph.stores) or "none"
                raise ValueError(f"process: there is no store {each!r}; the topology has: {known}")
        kind = "PROCESSVALUES" if keeps_key else "PROCESSOR"
        node = n.Process(
            **self._name(kind, name),
            supplier=supplier,
            connected=names,
            keeps_key=keeps_key,
        )
        return self._then(node, value_serde=None, needs_repartition=not keeps_key or self.needs_repartition)

    def process_values(
        self, supplier: Callable[[], Any], *stores: StoreSpec | str, name: str | None = None
    ) -> KStream:
        return self.process(supplier, *stores, keeps_key=True, name=name)

    def _serde(self, form: Any) -> Serde | None:
        return None if form is None else serde_of(form)

    def _key(self, form: Any) -> Serde:
        return serde_of(form) if form is not None else self.key_serde or self.graph.default_serde

    def _value(self, form: Any) -> Serde:
        return serde_of(form) if form is not None else self.value_serde or self.graph.default_serde


@dataclass(frozen=True)
class GroupedStream:
    """A stream grouped by its key, perhaps in windows."""

    stream: KStream
    name: str | None = None
    windows: Windows | None = None
    emit: n.EmitStrategy = "update"
    close_hook: Callable[[Any, Any], Any] | None = None
    retention_ms: int | None = None

    def windowed_by(self, windows: Windows, *, retention_ms: int | timedelta | None = None) -> GroupedStream:
        """Group by windows too. Lookups find a window for `retention_ms`, by default until it is closed."""
        kept_ms: int | None = milliseconds(retention_ms)
        if kept_ms is not None and kept_ms < windows.retention_ms:
            raise ValueError(
                f"retention_ms is {kept_ms}; the windows are needed for {windows.retention_ms} ms"
            )
        return replace(self, windows=windows, retention_ms=kept_ms)

    def final(self) -> GroupedStream:
        """One result a window, when it closes."""
        return replace(self, emit="close")

    def current(self) -> GroupedStream:
        """A result for each update: the default."""
        return replace(self, emit="update")

    def on_close(self, hook: Callable[[Any, Any], Any]) -> GroupedStream:
        """Call `hook(windowed key, value)` for each window that closes; results come as with `final()`."""
        return replace(self, emit="close", close_hook=checked(hook, "the hook of on_close"))

    def cogroup(self, adder: Any) -> CogroupedStream:
        """Aggregate this stream together with others: `cogroup(adder).cogroup(other, adder).aggregate(…)`."""
        return CogroupedStream().cogroup(self, adder)

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        return self._add(BuiltIns(((None, BuiltIn("count")),)), LONG, store, name, "AGGREGATE")

    def reduce(self, reducer: Any, *, store: str | None = None, name: str | None = None) -> KTable:
        checked(reducer, "the reducer")
        return self._add(Reduce(reducer), self.stream._value(None), store, name, "REDUCE")

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
    ) -> KTable:
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
        value: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """An aggregate as a value: functions in one object, or typed functions of another part."""
        serde = self.stream.graph.default_serde if value is None else serde_of(value)
        return self._add(aggregate, serde, store, name, "AGGREGATE")

    def _add(
        self, aggregate: AnyAggregate, serde: Serde, store: str | None, name: str | None, kind: str
    ) -> KTable:
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


def until_window_closes(*, records_max: int | None = None, bytes_max: int | None = None) -> n.Suppression:
    """One result a window, when stream time passes its end and the grace. A full buffer stops the task."""
    return _suppression(None, records_max, bytes_max, True)


def until_time_limit(
    limit_ms: int | timedelta,
    *,
    records_max: int | None = None,
    bytes_max: int | None = None,
    is_strict: bool = False,
) -> n.Suppression:
    """The last update of a key, `limit_ms` after the first one that waits. Where the buffer is full, the
    oldest update goes on earlier; with `is_strict` the task stops."""
    return _suppression(milliseconds(limit_ms), records_max, bytes_max, is_strict)


def _suppression(
    limit_ms: int | None, records_max: int | None, bytes_max: int | None, is_strict: bool
) -> n.Suppression:
    for name, least, value in (
        ("limit_ms", 0, limit_ms),
        ("records_max", 1, records_max),
        ("bytes_max", 1, bytes_max),
    ):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ValueError(
                f"{name} of a suppression is {value!r}: a whole number from {least} on is needed"
            )
    if is_strict and limit_ms is not None and records_max is None and bytes_max is None:
        raise ValueError("is_strict needs records_max or bytes_max: without one the buffer is never full")
    return n.Suppression(limit_ms, 0, records_max, bytes_max, is_strict)

"""KStream: each method adds nodes to the plan.

In: functions of the user, expressions, names, formats. Out: the next stream or table. Wrong arguments are
refused here, where the topology is built. Does not know: how nodes run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, overload

from barnabas.plans import nodes as n
from barnabas.plans.expressions import Expression, Literal_
from barnabas.plans.expressions import key as key_
from barnabas.plans.plan import PlanError
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.type_variables import K2, V2, K, R, V
from barnabas.streams.dsl.graph import Graph, checked
from barnabas.streams.dsl.groups import GroupedStream
from barnabas.streams.dsl.joinable_streams import JoinableStream
from barnabas.streams.dsl.optimizing import Repartition
from barnabas.streams.dsl.signatures import BatchFunction, OfBoth, OfValue, Processor
from barnabas.streams.dsl.tables import KTable
from barnabas.streams.serdes.formats import Form, serde_of


@dataclass(frozen=True)
class KStream(JoinableStream[K, V]):
    """A stream of records: keys have the type `K`, values the type `V`. Methods return new streams;
    this one stays as it is."""

    graph: Graph
    node: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    sources: tuple[str, ...] = ()
    needs_repartition: bool = False

    def _then(self, node: n.Node, **changes: Any) -> KStream[Any, Any]:
        self.graph.add(node)
        return replace(self, node=node.name, **changes)

    def _name(self, kind: str, name: str | None) -> dict[str, Any]:
        return {"name": self.graph.name(f"KSTREAM-{kind}-", name), "parents": (self.node,)}

    def filter(
        self, predicate: OfBoth[K, V, object] | BatchFunction, *, name: str | None = None
    ) -> KStream[K, V]:
        """Records for which `predicate(key, value)` holds. A `pandas_function` or `arrow_function` gets a
        batch of values, and gives a truth value for each."""
        return self._filter(predicate, "the predicate of filter", name, False)

    def _filter(self, predicate: Any, what: str, name: str | None, is_negated: bool) -> KStream[K, V]:
        checked(predicate, what, takes_batches=True)
        node = n.Filter(
            **self._name("FILTER", name),
            predicate=predicate,
            is_negated=is_negated,
            vectorised=getattr(predicate, "vectorised", None),
        )
        return self._then(node)

    def filter_not(
        self, predicate: OfBoth[K, V, object] | BatchFunction, *, name: str | None = None
    ) -> KStream[K, V]:
        return self._filter(predicate, "the predicate of filter_not", name, True)

    def map(
        self,
        function: Callable[[K, V], tuple[K2, V2]] | tuple[Expression, Expression],
        *,
        key: Form[K2] | str | None = None,
        value: Form[V2] | str | None = None,
        name: str | None = None,
    ) -> KStream[K2, V2]:
        """`function(key, value)` gives a pair. `key` and `value` are the formats of the new ones."""
        checked(function, "the function of map")
        node = n.Map(**self._name("MAP", name), function=function)
        return self._then(
            node, key_serde=self._serde(key), value_serde=self._serde(value), needs_repartition=True
        )

    @overload
    def map_values(
        self,
        function: OfValue[V, R] | BatchFunction,
        *,
        value: Form[R] | str | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def map_values(
        self,
        function: OfBoth[K, V, R],
        *,
        value: Form[R] | str | None = None,
        with_key: Literal[True],
        name: str | None = None,
    ) -> KStream[K, R]: ...

    def map_values(
        self, function: Any, *, value: Any = None, with_key: bool = False, name: str | None = None
    ) -> KStream[K, Any]:
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
        self,
        function: Callable[[K, V], Iterable[tuple[K2, V2]]],
        *,
        key: Form[K2] | str | None = None,
        value: Form[V2] | str | None = None,
        name: str | None = None,
    ) -> KStream[K2, V2]:
        checked(function, "the function of flat_map")
        node = n.FlatMap(**self._name("FLATMAP", name), function=function)
        return self._then(
            node, key_serde=self._serde(key), value_serde=self._serde(value), needs_repartition=True
        )

    @overload
    def flat_map_values(
        self,
        function: OfValue[V, Iterable[R]],
        *,
        value: Form[R] | str | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> KStream[K, R]: ...

    @overload
    def flat_map_values(
        self,
        function: OfBoth[K, V, Iterable[R]],
        *,
        value: Form[R] | str | None = None,
        with_key: Literal[True],
        name: str | None = None,
    ) -> KStream[K, R]: ...

    def flat_map_values(
        self, function: Any, *, value: Any = None, with_key: bool = False, name: str | None = None
    ) -> KStream[K, Any]:
        checked(function, "the function of flat_map_values")
        node = n.FlatMapValues(**self._name("FLATMAPVALUES", name), function=function, takes_key=with_key)
        return self._then(node, value_serde=self._serde(value))

    def select_key(
        self,
        function: OfBoth[K, V, K2],
        *,
        key: Form[K2] | str | None = None,
        name: str | None = None,
    ) -> KStream[K2, V]:
        checked(function, "the function of select_key")
        node = n.SelectKey(**self._name("KEY-SELECT", name), function=function)
        return self._then(node, key_serde=self._serde(key), needs_repartition=True)

    def restamp(self, function: OfBoth[K, V, int | None], *, name: str | None = None) -> KStream[K, V]:
        """Records get the time that `function(key, value)` gives; those without one are dropped."""
        checked(function, "the function of restamp")
        return self._then(n.Restamp(**self._name("RESTAMP", name), function=function))

    def peek(self, function: Callable[[K, V], object], *, name: str | None = None) -> KStream[K, V]:
        checked(function, "the function of peek")
        return self._then(n.Peek(**self._name("PEEK", name), function=function))

    def foreach(self, function: Callable[[K, V], object], *, name: str | None = None) -> None:
        checked(function, "the function of foreach")
        self.graph.add(n.Foreach(**self._name("FOREACH", name), function=function))

    def merge(self, other: KStream[K2, V2], *, name: str | None = None) -> KStream[K | K2, V | V2]:
        node = n.PassThrough(
            name=self.graph.name("KSTREAM-MERGE-", name), parents=(self.node, other.node), is_merge=True
        )
        return self._then(
            node,
            sources=self.sources + other.sources,
            needs_repartition=self.needs_repartition or other.needs_repartition,
        )

    def split(
        self,
        branches: Mapping[str, OfBoth[K, V, object]],
        *,
        default: str | None = None,
        name: str | None = None,
    ) -> dict[str, KStream[K, V]]:
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
        self,
        topic: str | OfBoth[K, V, str],
        *,
        key: Form[K] | str | None = None,
        value: Form[V] | str | None = None,
        name: str | None = None,
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

    def through(
        self, topic: str, *, key: Form[K] | str | None = None, value: Form[V] | str | None = None
    ) -> KStream[K, V]:
        """Write to a topic that exists, and go on with what is read from it."""
        self.to(topic, key=key, value=value)
        return self._read(topic, self._key(key), self._value(value), False)

    def repartition(
        self,
        name: str | None = None,
        *,
        partitions: int | None = None,
        key: Form[K] | str | None = None,
        value: Form[V] | str | None = None,
    ) -> KStream[K, V]:
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
        keeps_null_keys: bool = False,
    ) -> KStream[K, V]:
        graph = self.graph
        topic = f"{graph.application_id}-{prefix}-repartition"
        if topic in graph.moved:
            raise PlanError(
                f"two steps write the repartition topic {topic}: give each repartition, grouping and join a"
                " name of its own"
            )
        sink = graph.name("KSTREAM-SINK-", None if name is None else f"{name}-repartition-sink")
        keyed = graph.name("KSTREAM-FILTER-", None if name is None else f"{name}-repartition-filter")
        wanted = Literal_(True) if keeps_null_keys else key_().is_not_null()
        graph.add(n.Filter(name=keyed, parents=(self.node,), predicate=wanted))
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
        found = self._read(topic, key, value, True, None if name is None else f"{name}-repartition-source")
        graph.moved[topic] = self.node, found
        return found

    def _read(
        self,
        topic: str,
        key: Serde | None,
        value: Serde | None,
        is_internal: bool,
        name: str | None = None,
    ) -> KStream[K, V]:
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

    def partitioned(
        self, prefix: str, name: str | None = None, *, keeps_null_keys: bool = False
    ) -> KStream[K, V]:
        """This stream, through a repartition topic if its keys have changed. A named grouping that is
        aggregated twice has one topic. Left and outer joins keep records without a key (KIP-962)."""
        if not self.needs_repartition:
            return self
        key, value = self._key(None), self._value(None)
        before, behind = self.graph.moved.get(f"{self.graph.application_id}-{prefix}-repartition", ("", None))
        if before == self.node and (behind.key_serde, behind.value_serde) == (key, value):
            return cast("KStream[K, V]", behind)
        moved = self._through_internal(prefix, key, value, name=name, keeps_null_keys=keeps_null_keys)
        if not keeps_null_keys:
            added = [node.name for node in self.graph.nodes[-3:]]
            self.graph.repartitions.append(Repartition(self.node, *added))
        return moved

    def group_by_key(
        self,
        *,
        key: Form[K] | str | None = None,
        value: Form[V] | str | None = None,
        name: str | None = None,
    ) -> GroupedStream[K, V, K]:
        return GroupedStream(replace(self, key_serde=self._key(key), value_serde=self._value(value)), name)

    def group_by(
        self,
        function: OfBoth[K, V, K2],
        *,
        key: Form[K2] | str | None = None,
        value: Form[V] | str | None = None,
        name: str | None = None,
    ) -> GroupedStream[K2, V, K2]:
        """Group by a new key; a null one drops the record."""
        return self.select_key(function, key=key).group_by_key(value=value, name=name)

    def to_table(
        self, *, store: str | None = None, history_ms: int | None = None, name: str | None = None
    ) -> KTable[K, V]:
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

    def process(
        self,
        supplier: Callable[[], Processor[K, V]],
        *stores: StoreSpec | str,
        keeps_key: bool = False,
        name: str | None = None,
    ) -> KStream[K2, V2]:
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
        self, supplier: Callable[[], Processor[K, V]], *stores: StoreSpec | str, name: str | None = None
    ) -> KStream[K, V2]:
        return self.process(supplier, *stores, keeps_key=True, name=name)

    def _serde(self, form: Any) -> Serde[Any] | None:
        return None if form is None else serde_of(form)

    def _key(self, form: Any) -> Serde[Any]:
        return serde_of(form) if form is not None else self.key_serde or self.graph.default_serde

    def _value(self, form: Any) -> Serde[Any]:
        return serde_of(form) if form is not None else self.value_serde or self.graph.default_serde

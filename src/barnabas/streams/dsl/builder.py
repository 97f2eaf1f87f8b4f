"""StreamsBuilder: topics become streams and tables; `build` gives the plan.

Does not know: how a plan runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from barnabas.plans import nodes as n
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.type_variables import V2, TextKey
from barnabas.streams.dsl.graph import Graph
from barnabas.streams.dsl.optimizing import wanted
from barnabas.streams.dsl.streams import KStream
from barnabas.streams.dsl.tables import GlobalKTable, KTable
from barnabas.streams.serdes.formats import JSON, STRING, Form, serde_of


class StreamsBuilder:
    """Builds one topology. Keys are text and values JSON unless a topic says otherwise."""

    def __init__(self, application_id: str = "application", *, default_serde: Any = JSON) -> None:
        self._graph = Graph(application_id, KStream, serde_of(default_serde))

    @overload
    def stream(
        self,
        *topics: str,
        key: Form[TextKey] = ...,
        value: Form[V2] | str = ...,
        pattern: str | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
        name: str | None = None,
    ) -> KStream[TextKey, V2]: ...

    @overload
    def stream(
        self,
        *topics: str,
        key: str,
        value: Form[V2] | str = ...,
        pattern: str | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
        name: str | None = None,
    ) -> KStream[Any, V2]: ...

    def stream(
        self,
        *topics: str,
        key: Any = STRING,
        value: Any = JSON,
        pattern: str | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Records of one or more topics, or of those whose names match a pattern."""
        if not topics and pattern is None:
            raise ValueError("a stream needs a topic, several topics or a pattern")
        key_serde, value_serde = serde_of(key), serde_of(value)
        source = self._graph.add(
            n.Source(
                name=self._graph.name("KSTREAM-SOURCE-", name),
                topics=topics,
                pattern=pattern,
                key_serde=key_serde,
                value_serde=value_serde,
                timestamp_extractor=timestamp,
            )
        )
        return KStream(self._graph, source.name, key_serde, value_serde, sources=(source.name,))

    @overload
    def table(
        self,
        topic: str,
        *,
        key: Form[TextKey] = ...,
        value: Form[V2] | str = ...,
        store: str | None = None,
        history_ms: int | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
        name: str | None = None,
    ) -> KTable[TextKey, V2]: ...

    @overload
    def table(
        self,
        topic: str,
        *,
        key: str,
        value: Form[V2] | str = ...,
        store: str | None = None,
        history_ms: int | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
        name: str | None = None,
    ) -> KTable[Any, V2]: ...

    def table(
        self,
        topic: str,
        *,
        key: Any = STRING,
        value: Any = JSON,
        store: str | None = None,
        history_ms: int | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """A topic as a table: the last value of each key. `history_ms` makes it versioned: the newest value
        by time, not by arrival, and joins with streams see the value of the record's time, so far back."""
        source, table, spec = self._table_nodes(topic, key, value, store, name, False, history_ms, timestamp)
        return KTable(
            self._graph, table, spec.key_serde, spec.value_serde, sources=(source,), store=spec.name
        )

    @overload
    def global_table(
        self,
        topic: str,
        *,
        key: Form[TextKey] = ...,
        value: Form[V2] | str = ...,
        store: str | None = None,
        name: str | None = None,
    ) -> GlobalKTable[TextKey, V2]: ...

    @overload
    def global_table(
        self,
        topic: str,
        *,
        key: str,
        value: Form[V2] | str = ...,
        store: str | None = None,
        name: str | None = None,
    ) -> GlobalKTable[Any, V2]: ...

    def global_table(
        self,
        topic: str,
        *,
        key: Any = STRING,
        value: Any = JSON,
        store: str | None = None,
        name: str | None = None,
    ) -> GlobalKTable[Any, Any]:
        """A table that every task has whole, to look up by any key."""
        _, _, spec = self._table_nodes(topic, key, value, store, name, True)
        return GlobalKTable(self._graph, spec.name)

    def _table_nodes(
        self,
        topic: str,
        key: Any,
        value: Any,
        store: str | None,
        name: str | None,
        is_global: bool,
        history_ms: int | None = None,
        timestamp: Callable[[Any, int], int] | None = None,
    ) -> tuple[str, str, StoreSpec]:
        graph, key_serde, value_serde = self._graph, serde_of(key), serde_of(value)
        spec = StoreSpec(
            graph.store_name(f"{topic}-", store),
            StoreKind.TIMESTAMPED if history_ms is None else StoreKind.VERSIONED,
            key_serde,
            value_serde,
            history_ms=history_ms or 0,
            is_global=is_global,
        )
        graph.add_store(spec)
        source = graph.add(
            n.Source(
                name=graph.name("KSTREAM-SOURCE-"),
                topics=(topic,),
                key_serde=key_serde,
                value_serde=value_serde,
                is_global=is_global,
                timestamp_extractor=timestamp,
            )
        )
        table = graph.add(
            n.TableSource(
                name=graph.name("KTABLE-SOURCE-", name),
                parents=(source.name,),
                store=spec.name,
                is_versioned=history_ms is not None,
                is_global=is_global,
            )
        )
        if not is_global:
            graph.tables.append(table.name)
        return source.name, table.name, spec

    def build(self, optimization: str = "none") -> Plan:
        """The topology as a plan. `optimization` is Kafka Streams' `topology.optimization`: `all`, or some
        of `merge.repartition.topics` and `reuse.ktable.source.topics`."""
        if not self._graph.nodes:
            raise ValueError("the topology is empty: begin with stream(), table() or global_table()")
        return self._graph.plan(wanted(optimization))

"""A plan: nodes, stores, and what follows from how they are connected.

In: nodes in the order in which they were added, stores. Out: `Plan` with its sub-topologies, numbered as
Kafka Streams numbers them, their topics, and which topics must have the same number of partitions. Does not
know: how a plan is built (`streams/dsl`), or run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from barnabas.plans.nodes import Node, Sink, Source, TableSource
from barnabas.plans.stores import StoreSpec


class PlanError(ValueError):
    """A plan that cannot be: a name twice, an unknown parent or store, partitions that do not match."""


@dataclass(frozen=True)
class Subtopology:
    """Nodes that run together, one task for each partition of the sources."""

    number: int
    nodes: tuple[Node, ...]
    stores: tuple[StoreSpec, ...]
    is_global: bool = False
    global_stores: tuple[StoreSpec, ...] = ()  # stores of global tables that the nodes read

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Source))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Sink))

    @property
    def source_topics(self) -> tuple[str, ...]:
        """Topics as they are on the cluster, in order of their sources; without those that a pattern
        names."""
        return tuple(topic for source in self.sources for topic in source.topics)


@dataclass(frozen=True)
class RepartitionTopic:
    """An internal topic between two sub-topologies. `partitions` None: as many as its sub-topology needs."""

    name: str
    partitions: int | None = None


@dataclass(frozen=True)
class Plan:
    """`nodes` has parents before children. Names of internal topics have the prefix `<application id>-`."""

    nodes: tuple[Node, ...]
    stores: Mapping[str, StoreSpec] = field(default_factory=lambda: MappingProxyType({}))
    copartitioned: tuple[frozenset[str], ...] = ()  # groups of source nodes
    application_id: str = "application"

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise PlanError(f"two nodes have the name {node.name}")
            for parent in node.parents:
                if parent not in seen:
                    raise PlanError(f"{node.name}: its parent {parent} is not added before it")
            for store in node.stores:
                if store not in self.stores:
                    raise PlanError(f"{node.name} uses the store {store}, which is not added")
            seen.add(node.name)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """Names of children in the order in which they were added."""
        found: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for parent in node.parents:
                found[parent].append(node.name)
        return {name: tuple(names) for name, names in found.items()}

    @cached_property
    def users_of_stores(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {name: [] for name in self.stores}
        for node in self.nodes:
            for store in node.stores:
                found[store].append(node.name)
        return {name: tuple(names) for name, names in found.items()}

    @cached_property
    def subtopologies(self) -> tuple[Subtopology, ...]:
        """Groups of nodes that edges and stores connect. Global tables have one each, marked as such."""
        groups = _Groups(node.name for node in self.nodes)
        for node in self.nodes:
            for parent in node.parents:
                groups.unite(node.name, parent)
        for store, users in self.users_of_stores.items():
            if not self.stores[store].is_global:
                for user in users[1:]:
                    groups.unite(users[0], user)
        # Kafka Streams numbers by sources in the order in which they were added, then by names of others.
        sources = [node.name for node in self.nodes if isinstance(node, Source)]
        others = sorted(node.name for node in self.nodes if not isinstance(node, Source))
        numbers: dict[str, int] = {}
        for name in (*sources, *others):
            numbers.setdefault(groups.root(name), len(numbers))
        members: dict[int, list[Node]] = {number: [] for number in numbers.values()}
        for node in self.nodes:
            members[numbers[groups.root(node.name)]].append(node)
        return tuple(self._subtopology(number, tuple(nodes)) for number, nodes in members.items())

    def _subtopology(self, number: int, nodes: tuple[Node, ...]) -> Subtopology:
        names = dict.fromkeys(store for node in nodes for store in node.stores)
        is_global = any(isinstance(node, Source) and node.is_global for node in nodes)
        stores = tuple(self.stores[name] for name in names if is_global or not self.stores[name].is_global)
        shared = () if is_global else tuple(spec for spec in self.stores.values() if spec.is_global)
        return Subtopology(number, nodes, stores, is_global, shared)

    @property
    def repartition_topics(self) -> tuple[RepartitionTopic, ...]:
        found: dict[str, RepartitionTopic] = {}
        for node in self.nodes:
            if isinstance(node, Sink) and node.is_internal and isinstance(node.topic, str):
                found.setdefault(node.topic, RepartitionTopic(node.topic, node.partitions))
        return tuple(found.values())

    @property
    def global_topics(self) -> tuple[str, ...]:
        return tuple(
            topic
            for node in self.nodes
            if isinstance(node, Source) and node.is_global
            for topic in node.topics
        )

    def table_source_of(self, store: str) -> TableSource | None:
        for node in self.nodes:
            if isinstance(node, TableSource) and node.store == store:
                return node
        return None


class _Groups:
    """Names in groups that are united step by step (union-find)."""

    def __init__(self, names: Iterable[str]) -> None:
        self._above = {name: name for name in names}

    def root(self, name: str) -> str:
        while self._above[name] != name:
            self._above[name] = self._above[self._above[name]]
            name = self._above[name]
        return name

    def unite(self, one: str, two: str) -> None:
        self._above[self.root(one)] = self.root(two)

"""Kafka Streams' optimizations of a topology (`topology.optimization`): fewer internal topics.

In: a plan, the repartitions that the DSL added by itself. Out: the plan with one repartition behind each step
that changes keys, under the names that Kafka Streams gives, and with source topics in place of changelogs of
tables. Does not know: how a plan is built, or run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.plans import nodes as n
from barnabas.plans.expressions import key
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind, StoreSpec

REUSE = "reuse.ktable.source.topics"
MERGE = "merge.repartition.topics"
SELF_JOIN = "single.store.self.join"  # known to Kafka Streams; such a join keeps its two stores here
NAMES = (REUSE, MERGE, SELF_JOIN)
CHANGES_KEY = (n.Map, n.FlatMap, n.SelectKey)
KEEPS_RECORDS = (n.Filter, n.Peek, n.Branch, n.PassThrough, n.Restamp)
CHANGES_VALUE = (n.MapValues, n.FlatMapValues)


@dataclass(frozen=True, slots=True)
class Repartition:
    """The nodes of a repartition: records of `parent` go through the filter and the sink, and come out of
    the source."""

    parent: str
    filter: str
    sink: str
    source: str


def wanted(text: str) -> frozenset[str]:
    """The optimizations that a setting names: `all`, `none`, or names with commas between them."""
    if text in ("all", "none", ""):
        return frozenset(NAMES if text == "all" else ())
    names = frozenset(name.strip() for name in text.split(","))
    for name in sorted(names):
        if name not in NAMES:
            raise ValueError(f"topology.optimization {name!r}: give all, none, or some of {', '.join(NAMES)}")
    return names


def optimized(
    plan: Plan, repartitions: Sequence[Repartition], tables: Sequence[str], names: frozenset[str]
) -> Plan:
    """`tables` are the nodes of tables that are read from a topic of the user."""
    if MERGE in names:
        plan = _Merging(plan).merged(repartitions)
    return replace(plan, stores=_with_source_topics(plan, tables)) if REUSE in names else plan


def _with_source_topics(plan: Plan, tables: Iterable[str]) -> Mapping[str, StoreSpec]:
    """A table of a topic is restored from the topic. Versions and times that a function extracts are not in
    it as the table has them."""
    stores = dict(plan.stores)
    for name in tables:
        table = plan.by_name[name]
        source = plan.by_name[table.parents[0]]
        assert isinstance(table, n.TableSource) and table.store and isinstance(source, n.Source)
        spec = stores[table.store]
        if spec.kind is StoreKind.TIMESTAMPED and source.timestamp_extractor is None:
            stores[spec.name] = replace(spec, source_topic=source.topics[0])
    return stores


class _Merging:
    """Moves repartitions up to the step that changed the keys, one for each such step."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._nodes = plan, dict(plan.by_name)
        self._copartitioned = list(plan.copartitioned)
        self._order = list(self._nodes)

    def merged(self, repartitions: Sequence[Repartition]) -> Plan:
        groups: dict[str, list[Repartition]] = {}
        for each in repartitions:
            anchor = self._anchor(each.parent)
            if anchor is not None and self._follows_a_new_key(each.parent):
                groups.setdefault(anchor, []).append(each)
        for anchor, some in groups.items():
            self._merge(anchor, [each for each in some if self._has_formats_of(each, some[0])])
        nodes = tuple(self._nodes[name] for name in self._order)
        return replace(self._plan, nodes=nodes, copartitioned=tuple(self._copartitioned))

    def _anchor(self, name: str) -> str | None:
        """The last node that all records pass before the repartition, with keys and values as they are
        there; None where a step between changes values."""
        node = self._nodes[name]
        if _changes_key(node) or len(node.parents) > 1:
            return name if _changes_key(node) or isinstance(node, n.PassThrough) else None
        return self._anchor(node.parents[0]) if isinstance(node, KEEPS_RECORDS) and node.parents else None

    def _follows_a_new_key(self, name: str) -> bool:
        """Whether keys were changed above, and no value since, on the way that Kafka Streams looks at: the
        last one of a merge."""
        node = self._nodes[name]
        if _changes_key(node):
            return True
        if isinstance(node, CHANGES_VALUE) or not isinstance(node, KEEPS_RECORDS):
            return False
        return any(self._follows_a_new_key(parent) for parent in node.parents)

    def _has_formats_of(self, one: Repartition, other: Repartition) -> bool:
        here, there = self._nodes[one.sink], self._nodes[other.sink]
        assert isinstance(here, n.Sink) and isinstance(there, n.Sink)
        return here.key_serde == there.key_serde and here.value_serde == there.value_serde

    def _merge(self, anchor: str, some: Sequence[Repartition]) -> None:
        sink, source = self._nodes[some[0].sink], self._nodes[some[0].source]
        assert isinstance(sink, n.Sink) and isinstance(sink.topic, str) and isinstance(source, n.Source)
        topic = sink.topic.removeprefix(f"{self._plan.application_id}-")
        new = [
            n.Filter(name=f"{topic}-filter", parents=(anchor,), predicate=key().is_not_null()),
            replace(sink, name=f"{topic}-sink", parents=(f"{topic}-filter",)),
            replace(source, name=f"{topic}-source"),
        ]
        for each in some:
            self._lead_through(each, anchor, new[-1].name)
        for each in some:
            for name in (each.filter, each.sink, each.source):
                del self._nodes[name]
                self._order.remove(name)
        at = self._order.index(anchor) + 1
        self._order[at:at] = [node.name for node in new]
        self._nodes.update((node.name, node) for node in new)

    def _lead_through(self, repartition: Repartition, anchor: str, source: str) -> None:
        """Records come out of the new source before the steps between, and go on where the old source was."""
        first = repartition.parent
        while first != anchor and anchor not in (parents := self._nodes[first].parents) and first != source:
            if source in parents:
                break  # another repartition has moved it already
            first = parents[0]
        if first != anchor:
            self._reconnect([first], anchor, source)
        after = source if repartition.parent == anchor else repartition.parent
        self._reconnect(self._order, repartition.source, after)
        self._copartitioned = [
            frozenset(source if name == repartition.source else name for name in group)
            for group in self._copartitioned
        ]

    def _reconnect(self, names: Iterable[str], old: str, new: str) -> None:
        for name in names:
            node = self._nodes[name]
            if old in node.parents:
                parents = tuple(new if parent == old else parent for parent in node.parents)
                self._nodes[name] = replace(node, parents=parents)


def _changes_key(node: n.Node) -> bool:
    return isinstance(node, CHANGES_KEY) or (isinstance(node, n.Process) and not node.keeps_key)

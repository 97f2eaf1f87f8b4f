"""Internal topics of an application: how many partitions they need, and Kafka Streams' settings for them.

In: a plan, the partitions of topics that exist. Out: topics to create, with their settings; an error where
co-partitioned topics differ. Pure. Does not know: clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barnabas.plans.nodes import Sink, Source
from barnabas.plans.plan import Plan, PlanError, Subtopology
from barnabas.plans.stores import StoreKind, StoreSpec

DAY_MS = 24 * 60 * 60 * 1000
SEGMENT_BYTES = 50 * 1024 * 1024
REPARTITION = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "segment.bytes": str(SEGMENT_BYTES),
    "message.timestamp.type": "CreateTime",
}
NOTHING: Mapping[str, str] = {}
WINDOWED = (StoreKind.WINDOW, StoreKind.SESSION, StoreKind.JOIN_WINDOW)


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Creation:
    """How internal topics are created: `replication.factor`, -1 for the brokers' default, and settings of
    `topic.`, which replace those of the kind of topic. A store's own settings come last, as in Kafka
    Streams."""

    replicas: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


USUAL = Creation()


def internal_topics(
    plan: Plan, existing: Mapping[str, int], configs: Mapping[str, str] = NOTHING
) -> list[InternalTopic]:
    """Repartition topics and changelogs of a plan; `existing` has the partitions of its source topics."""
    counts = repartition_counts(plan, existing)
    found = [InternalTopic(name, count, {**REPARTITION, **configs}) for name, count in counts.items()]
    known = {**existing, **counts}
    for subtopology in plan.subtopologies:
        if subtopology.is_global:
            continue
        tasks = task_count(subtopology, known)
        for store in subtopology.stores:
            name = store.changelog_topic(plan.application_id)
            if name is not None and store.source_topic is None:
                found.append(InternalTopic(name, tasks, changelog_settings(store, configs)))
    return found


def task_count(subtopology: Subtopology, counts: Mapping[str, int]) -> int:
    """A task for each partition of the source topic that has most."""
    return max((counts[topic] for topic in subtopology.source_topics), default=0)


def repartition_counts(plan: Plan, existing: Mapping[str, int]) -> dict[str, int]:
    """Partitions of each repartition topic: as given, or as many as the sub-topology that writes it."""
    internal = {each.name: each.partitions for each in plan.repartition_topics}
    counts = {name: count for name, count in internal.items() if count is not None}
    counts |= given_by_copartitions(plan, existing, internal)
    left = [name for name in internal if name not in counts]
    while left:
        known = {name: written_from(plan, name, {**existing, **counts}) for name in left}
        solved = {
            name: max(count or 0 for count in some)
            for name, some in known.items()
            if some and None not in some
        }
        if not solved:
            raise PlanError(
                f"the partitions of {', '.join(left)} depend on each other: give one of them a number"
            )
        counts |= solved
        left = [name for name in left if name not in counts]
    match_copartitioned(plan, existing, internal, counts)
    return counts


def given_by_copartitions(
    plan: Plan, existing: Mapping[str, int], internal: Mapping[str, int | None]
) -> dict[str, int]:
    """Partitions of repartition topics that are joined with a topic whose number is known. The topics of a
    foreign-key join are known no other way: each is written from what the other one brings."""
    found: dict[str, int] = {}
    for group in plan.copartitioned:
        topics = topics_of_group(plan, group)
        numbers = [number for topic in topics if (number := existing.get(topic) or internal.get(topic))]
        if numbers:
            found |= {topic: numbers[0] for topic in topics if topic in internal and internal[topic] is None}
    return found


def topics_of_group(plan: Plan, group: Iterable[str]) -> list[str]:
    nodes = [plan.by_name[name] for name in group]
    return sorted({topic for node in nodes if isinstance(node, Source) for topic in node.topics})


def written_from(plan: Plan, topic: str, counts: Mapping[str, int]) -> list[int | None]:
    """Partitions of the topics from which a repartition topic's records come; None if not known."""
    found: list[int | None] = []
    for subtopology in plan.subtopologies:
        if any(isinstance(sink, Sink) and sink.topic == topic for sink in subtopology.sinks):
            found += [counts.get(each) for each in subtopology.source_topics]
    return found


def match_copartitioned(
    plan: Plan, existing: Mapping[str, int], internal: Mapping[str, int | None], counts: dict[str, int]
) -> None:
    """Give repartition topics the partitions of those that they are joined with."""
    for group in plan.copartitioned:
        topics = topics_of_group(plan, group)
        fixed = {topic: existing.get(topic) or internal.get(topic) for topic in topics}
        numbers = {topic: number for topic, number in fixed.items() if number}
        if len(set(numbers.values())) > 1:
            text = ", ".join(f"{topic} has {number}" for topic, number in numbers.items())
            raise PlanError(f"topics that are joined need the same number of partitions: {text}")
        wanted = max(numbers.values(), default=0) or max(counts[topic] for topic in topics)
        counts.update({topic: wanted for topic in topics if topic in counts})


def changelog_settings(store: StoreSpec, configs: Mapping[str, str] = NOTHING) -> dict[str, str]:
    settings = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    if store.kind in WINDOWED:
        settings["cleanup.policy"] = "compact,delete"
    settings |= configs
    if store.kind in WINDOWED:  # windows must not go before their store forgets them
        settings["retention.ms"] = str(min(store.retention_ms + DAY_MS, 2**63 - 1))
    if store.kind == StoreKind.VERSIONED:  # compaction must leave the history
        settings["min.compaction.lag.ms"] = str(store.history_ms + DAY_MS)
    return {**settings, **store.log_config}

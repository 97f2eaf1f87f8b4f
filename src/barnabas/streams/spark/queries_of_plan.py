"""From a plan to running queries: internal topics are created, each sub-topology becomes a query.

In: a plan, settings, a cluster. Out: queries for the conductor. Sub-topologies are connected by real
repartition topics. Does not know: Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.plans.interpreter.task import Handlers
from barnabas.plans.nodes import Process, Source
from barnabas.plans.plan import Plan, PlanError, Subtopology
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.fetcher import EARLIEST, LATEST
from barnabas.streams.spark.conductor import Query
from barnabas.streams.spark.internal_topics import USUAL, Creation, internal_topics
from barnabas.streams.spark.jobs import PickledLogic
from barnabas.streams.spark.plan_logic import MakePlanLogic
from barnabas.streams.spark.task_port import MakeLogic, TaskSettings

RESETS = {"earliest": EARLIEST, "latest": LATEST}


def queries_of(
    plan: Plan,
    settings: TaskSettings,
    cluster: WorkerCluster,
    *,
    handlers: Handlers | None = None,
    offset_reset: str = "earliest",
    make_logic: Callable[[int], MakeLogic] | None = None,
    creation: Creation = USUAL,
) -> list[Query]:
    """Create what is missing on the cluster, and make a query of each sub-topology. `make_logic` gives the
    logic of a sub-topology by its number; by default it is the interpreter's."""
    existing = partitions_of_sources(plan, cluster)
    counts = {**existing, **create_internal_topics(plan, existing, cluster, creation)}
    found = []
    for number, subtopology in enumerate(plan.subtopologies):
        if subtopology.is_global:
            continue
        topics = topics_of(subtopology, counts)
        logic: MakeLogic = (
            MakePlanLogic(plan, number, settings.client, handlers or Handlers(), settings.measures_details)
            if make_logic is None
            else make_logic(number)
        )
        resets = {
            topic: RESETS.get(source.offset_reset or offset_reset, EARLIEST)
            for source in subtopology.sources
            for topic in topics_of_source(source, counts)
        }
        query = Query(settings, subtopology.number, topics, PickledLogic.of(logic), resets)
        query.purged = frozenset(topics) & {each.name for each in plan.repartition_topics}
        if any(isinstance(node, Process) for node in subtopology.nodes):
            query.timers = dict.fromkeys(range(max(topics.values(), default=0)), 0)
        found.append(query)
    return found


def topics_of(subtopology: Subtopology, counts: Mapping[str, int]) -> dict[str, int]:
    return {
        topic: counts[topic] for source in subtopology.sources for topic in topics_of_source(source, counts)
    }


def topics_of_source(source: Source, known: Iterable[str]) -> list[str]:
    if source.pattern is None:
        return list(source.topics)
    return sorted(topic for topic in known if re.fullmatch(source.pattern, topic))


def partitions_of_sources(plan: Plan, cluster: WorkerCluster) -> dict[str, int]:
    """Partitions of the source topics that are not internal; an error names those that do not exist."""
    internal = {each.name for each in plan.repartition_topics}
    sources = [node for node in plan.nodes if isinstance(node, Source)]
    known = {name: len(topic.partitions) for name, topic in run(cluster.topics(None)).items()}
    wanted = {topic for source in sources for topic in topics_of_source(source, known)} - internal
    if missing := sorted(wanted - known.keys()):
        raise PlanError(f"source topics do not exist: {', '.join(missing)}. Create them before the start.")
    return {topic: known[topic] for topic in sorted(wanted)}


def create_missing(topics: Iterable[str], cluster: WorkerCluster, replicas: int = USUAL.replicas) -> None:
    """Create topics with one partition and the brokers' settings, where they do not exist."""
    admin = TopicAdmin(cluster)
    for name in topics:
        try:
            run(admin.create_topic(NewTopic(name, 1, replicas)))
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


def create_internal_topics(
    plan: Plan, existing: Mapping[str, int], cluster: WorkerCluster, creation: Creation = USUAL
) -> dict[str, int]:
    """Create repartition topics and changelogs that are missing; the partitions of all of them."""
    admin = TopicAdmin(cluster)
    found = {}
    for topic in internal_topics(plan, existing, creation.configs):
        new = NewTopic(topic.name, topic.partitions, creation.replicas, configs=dict(topic.settings))
        try:
            run(admin.create_topic(new))
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            there = len(run(cluster.topics([topic.name]))[topic.name].partitions)
            if there != topic.partitions:
                raise PlanError(
                    f"the internal topic {topic.name} has {there} partitions, the plan needs"
                    f" {topic.partitions}: reset the application, or give it another id"
                ) from None
        found[topic.name] = topic.partitions
    return found

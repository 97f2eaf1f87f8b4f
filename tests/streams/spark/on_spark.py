"""Plans on Spark and a broker, side by side in one application, until nothing is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.spark_sessions import STARTS_FAST

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.plans.interpreter.records import Output
from barnabas.plans.nodes import Sink, Source
from barnabas.plans.plan import Plan
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import LATEST, OffsetRange
from barnabas.streams.spark.conductor import Conductor
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.task_outputs import write
from barnabas.streams.spark.task_port import InputRecord, TaskSettings
from barnabas.streams.spark.task_records import read_range
from barnabas.testing.broker import Broker

SECONDS_MAX = 300.0
Results = dict[str, list[InputRecord]]


def own_topics(plan: Plan) -> tuple[set[str], set[str]]:
    """Topics that a plan reads and writes, without internal ones."""
    internal = {each.name for each in plan.repartition_topics}
    sources = {topic for node in plan.nodes if isinstance(node, Source) for topic in node.topics}
    sinks = {node.topic for node in plan.nodes if isinstance(node, Sink) and isinstance(node.topic, str)}
    return sources - internal, sinks - internal


def run_on_spark(
    broker: Broker, folder: Path, plans: Sequence[Plan], inputs: Mapping[str, Sequence[Output]], *, once: bool
) -> Results:
    """What is in the topics that the plans write, when all records of the inputs went through. Topics have
    one partition. `inputs` is by application id."""
    client = ClientSettings(broker.bootstrap, isolation_level="read_committed")
    cluster = WorkerCluster(client)
    spark = session(SparkSettings("local[2]", settings=STARTS_FAST), sets=())
    conductor = Conductor(spark, client)
    producer = Transaction(cluster)
    run(producer.init())
    try:
        written: set[str] = set()
        for plan in plans:
            sources, sinks = own_topics(plan)
            written |= sinks
            for topic in sorted(sources | sinks):
                run(TopicAdmin(cluster).create_topic(NewTopic(topic, 1, 1)))
            settings = TaskSettings(plan.application_id, client, str(folder), is_exactly_once=once)
            write(settings, cluster, producer, inputs[plan.application_id])
        for plan in plans:
            settings = TaskSettings(plan.application_id, client, str(folder), is_exactly_once=once)
            for query in queries_of(plan, settings, cluster):
                conductor.add(query)
        conductor.run_until_idle(SECONDS_MAX)
        errors = {query.name: query.error for query in conductor.queries if query.error}
        assert not errors, errors
        ends = cluster.offsets({TopicPartition(topic, 0): LATEST for topic in sorted(written)})
        return {
            place.topic: read_range(cluster, OffsetRange(place.topic, b"", 0, 0, end), 10_000)
            for place, end in ends.items()
        }
    finally:
        conductor.close()
        run(cluster.close())

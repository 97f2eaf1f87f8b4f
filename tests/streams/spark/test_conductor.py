"""A plan of two sub-topologies through Spark gives each count once, also after a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark_sessions import STARTS_FAST
from tests.streams.spark.counting import Counted
from tests.streams.spark.local import KEEPS_OLD_RECORDS

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Transaction
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.plans.aggregates import BuiltIns, F
from barnabas.plans.nodes import FlatMap, Sink, Source, StreamAggregate, TableToStream
from barnabas.plans.plan import Plan, PlanError
from barnabas.plans.serdes import PlainSerde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import OffsetRange
from barnabas.streams.spark.conductor import Conductor
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.task_outputs import write
from barnabas.streams.spark.task_port import TaskSettings
from barnabas.streams.spark.task_records import read_range
from barnabas.testing.broker import Broker

TEXT = PlainSerde("string", str.encode, bytes.decode)
NUMBER = PlainSerde(
    "int64", lambda n: n.to_bytes(8, "big", signed=True), lambda b: int.from_bytes(b, "big", signed=True)
)
APPLICATION = "word-count"
REPARTITION = f"{APPLICATION}-words-repartition"


def word_count() -> Plan:
    return Plan(
        (
            Source(name="lines", topics=("lines",), key_serde=TEXT, value_serde=TEXT),
            FlatMap(
                name="split",
                parents=("lines",),
                function=lambda _, line: [(word, "") for word in line.split()],
            ),
            Sink(
                name="to-words",
                parents=("split",),
                topic=REPARTITION,
                key_serde=TEXT,
                value_serde=TEXT,
                is_internal=True,
            ),
            Source(name="words", topics=(REPARTITION,), key_serde=TEXT, value_serde=TEXT, is_internal=True),
            StreamAggregate(
                name="count", parents=("words",), store="counts", aggregate=BuiltIns(((None, F.count()),))
            ),
            TableToStream(name="changes", parents=("count",)),
            Sink(name="out", parents=("changes",), topic="counts", key_serde=TEXT, value_serde=NUMBER),
        ),
        {"counts": StoreSpec("counts", StoreKind.TIMESTAMPED, TEXT, NUMBER)},
        application_id=APPLICATION,
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


def last_values(cluster: WorkerCluster, topic: str) -> tuple[dict[str, int], int]:
    """The last value of each word, and how many records there are."""
    found: dict[str, int] = {}
    count = 0
    places = [TopicPartition(topic, each) for each in run(cluster.topics([topic]))[topic].partitions]
    for place, end in cluster.offsets(dict.fromkeys(places, -1)).items():
        for record in read_range(cluster, OffsetRange(topic, b"", place.partition, 0, end), 10_000):
            assert record.key is not None and record.value is not None
            found[TEXT.from_bytes(record.key)] = NUMBER.from_bytes(record.value)
            count += 1
    return found, count


def test_words_are_counted_once_over_two_runs(broker: Broker, tmp_path: Path) -> None:
    client = ClientSettings(broker.bootstrap, isolation_level="read_committed")
    cluster = WorkerCluster(client)
    for topic in ("lines", "counts"):
        run(TopicAdmin(cluster).create_topic(NewTopic(topic, 2, 1)))
    settings = TaskSettings(APPLICATION, client, str(tmp_path), is_exactly_once=True)
    spark = session(SparkSettings("local[2]", settings=STARTS_FAST), sets=())
    lines = [f"to be or not to be {number % 3}" for number in range(50)]
    expected: Counter[str] = Counter()
    try:
        for round_number in range(2):
            producer = Transaction(cluster)
            run(producer.init())
            write(settings, cluster, producer, [Counted("lines", None, line.encode(), 1) for line in lines])
            for line in lines:
                expected.update(line.split())
            conductor = Conductor(spark, client)
            for query in queries_of(word_count(), settings, cluster):
                conductor.add(query)
            conductor.run_until_idle(60)
            assert [query.error for query in conductor.queries] == [None, None], round_number
            conductor.close()
            assert last_values(cluster, "counts")[0] == expected
        assert last_values(cluster, f"{APPLICATION}-counts-changelog")[0] == expected
        committed = run(Transaction(cluster).committed(APPLICATION))
        ends = cluster.offsets(dict.fromkeys(committed, -1))
        assert {place: offset for place, (offset, _) in committed.items()} == ends
        with pytest.raises(PlanError, match="source topics do not exist: missing"):
            queries_of(Plan((Source(name="s", topics=("missing",)),)), settings, cluster)
    finally:
        run(cluster.close())

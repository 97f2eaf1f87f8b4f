"""One data folder, two brokers in turn: each opens what the other wrote and goes on where it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka

from .requests import batch, produce
from .talk import Talk

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java"), pytest.mark.slow]

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ROUNDS = {"plain": 1, "append-time": 1, "segments": 1, "many": 3}
RECORDS = 200
QUICK = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
"""A killed Apache Kafka node has to wait for the end of its own session when it comes back."""
NOT_YET = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
Record = tuple[int, int, int, bytes | None, bytes | None, Any]


@contextmanager
def apache(data: Path) -> Iterator[str]:
    with ApacheKafka(data, QUICK) as kafka:
        yield kafka.bootstrap


@contextmanager
def ours(data: Path) -> Iterator[str]:
    with Broker(data) as broker:
        yield broker.bootstrap


@contextmanager
def apache_killed(data: Path) -> Iterator[str]:
    """Apache Kafka that is not stopped but killed in the end."""
    kafka = ApacheKafka(data, QUICK)
    try:
        kafka.start()
        yield kafka.bootstrap
    finally:
        kafka.kill()
        kafka.close()


@contextmanager
def ours_killed(data: Path) -> Iterator[str]:
    broker = Broker(data, in_process=False)
    broker.start()
    try:
        yield broker.bootstrap
    finally:
        broker.kill()


def create_topics(bootstrap: str) -> None:
    settings = {
        "plain": {},
        "append-time": {"message.timestamp.type": "LogAppendTime"},
        "segments": {"segment.bytes": "1048576", "index.interval.bytes": "500"},
        "many": {"retention.ms": "123456789"},
    }
    topics = [NewTopic(name, ROUNDS[name], 1, config=config) for name, config in settings.items()]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(topics).values():
        future.result(30)


def write(bootstrap: str, label: str) -> None:
    """Records of every kind to every topic, each compression in turn."""
    hour_ago = int(time.time() * 1000) - 3_600_000
    failed: list[object] = []
    for number, compression in enumerate(COMPRESSIONS):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": compression,
                "enable.idempotence": number % 2 == 0,
                "linger.ms": 5,
            }
        )
        for name, partitions in ROUNDS.items():
            for n in range(RECORDS):
                producer.produce(
                    name,
                    on_delivery=lambda error, _: failed.append(error) if error is not None else None,
                    value=None
                    if n % 10 == 9
                    else f"{label} {compression} {n} ".encode() * (60 if name == "segments" else 1),
                    key=None if n % 7 == 0 else b"%d" % n,
                    partition=n % partitions,
                    headers=[("label", label.encode()), ("null", None)] if n % 3 == 0 else None,
                    timestamp=0 if name == "append-time" else hour_ago + number * 1_000 + n,
                )
        assert producer.flush(30) == 0
    assert not failed


def watermarks(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Where a partition begins and ends; a broker that has just started may not lead it yet."""
    deadline = time.monotonic() + 30
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=30)
            return low, high
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                raise


def everything(bootstrap: str) -> dict[str, list[Record]]:
    """All records of all topics, read by a consumer that was told where the ends are."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "all", "enable.auto.commit": False})
    try:
        places = [
            TopicPartition(name, p, OFFSET_BEGINNING) for name, count in ROUNDS.items() for p in range(count)
        ]
        total = 0
        for place in places:
            low, high = watermarks(consumer, place)
            total += high - low
        consumer.assign(places)
        found: dict[str, list[Record]] = {name: [] for name in ROUNDS}
        while total:
            for message in consumer.consume(total, timeout=10):
                assert message.error() is None, message.error()
                record = (message.partition(), message.offset(), message.timestamp()[1])
                found[message.topic()].append((*record, message.key(), message.value(), message.headers()))
                total -= 1
        return {name: sorted(records, key=lambda record: record[:2]) for name, records in found.items()}
    finally:
        consumer.close()


def descriptions(bootstrap: str) -> dict[str, Any]:
    """Topic ids, partitions and settings that both products have."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    from confluent_kafka import TopicCollection

    described = {
        name: (str(future.result(30).topic_id), len(future.result(30).partitions))
        for name, future in admin.describe_topics(TopicCollection(list(ROUNDS))).items()
    }
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in ROUNDS]
    for resource, future in admin.describe_configs(resources).items():
        entries = future.result(30).values()
        values = {
            each.name: each.value for each in entries if not each.name.startswith(("barnabas.", "confluent."))
        }
        described[resource.name] += (values,)
    return described


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(apache, ours, marks=pytest.mark.long, id="apache then ours"),
        pytest.param(ours, apache, marks=pytest.mark.long, id="ours then apache"),
        pytest.param(apache_killed, ours, id="apache killed, then ours"),
        pytest.param(ours_killed, apache, marks=pytest.mark.long, id="ours killed, then apache"),
    ],
)
def test_a_folder_goes_back_and_forth(
    tmp_path: Path, first: Callable[..., Any], second: Callable[..., Any]
) -> None:
    data = tmp_path / "data"
    with first(data) as bootstrap:
        create_topics(bootstrap)
        write(bootstrap, "first")
        first_producer_writes(bootstrap)
        written, described = everything(bootstrap), descriptions(bootstrap)
    assert sum(len(records) for records in written.values()) == len(COMPRESSIONS) * RECORDS * len(ROUNDS)

    with second(data) as bootstrap:
        assert descriptions(bootstrap) == described
        assert everything(bootstrap) == written
        second_knows_the_producer(bootstrap)
        write(bootstrap, "second")
        more = everything(bootstrap)
    for name, records in written.items():
        places = {record[:2] for record in records}
        assert [record for record in more[name] if record[:2] in places] == records
        assert len(more[name]) == 2 * len(records)

    with first(data) as bootstrap:
        assert descriptions(bootstrap) == described
        assert everything(bootstrap) == more


def first_producer_writes(bootstrap: str) -> None:
    with closing(Talk(port_of(bootstrap), "")) as talk:
        wanted = {"name": "sequences", "num_partitions": 1, "replication_factor": 1}
        talk.silently(ApiKey.CREATE_TOPICS, 7, topics=[wanted])
        talk.wait_until_served("sequences", 1)
        assert [send(talk, n) for n in range(7)] == [("NONE", n) for n in range(7)]


def second_knows_the_producer(bootstrap: str) -> None:
    """Duplicates, gaps and old epochs are told from what the other broker left."""
    with closing(Talk(port_of(bootstrap), "")) as talk:
        talk.wait_until_served("sequences", 1)
        assert send(talk, 6) == ("NONE", 6), "a duplicate is answered with its first offset"
        assert send(talk, 8) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
        assert send(talk, 7) == ("NONE", 7)
        assert send(talk, 0, epoch=1) == ("INVALID_PRODUCER_EPOCH", -1)


def send(talk: Talk, sequence: int, epoch: int = 2) -> tuple[str, int]:
    now = int(time.time() * 1000)  # producers whose last batch is older than a day are forgotten
    fields = {"producer_id": 4_000, "producer_epoch": epoch, "base_sequence": sequence}
    records = batch(b"%d" % sequence, time_ms=now, **fields)
    answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, "sequences", records))
    partition = answer["responses"][0]["partition_responses"][0]
    return partition["error_code"], partition["base_offset"]


def port_of(bootstrap: str) -> int:
    return int(bootstrap.rpartition(":")[2])

"""kafka-python: produce, assign, seek, offsets by time and the admin client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import kafka.codec
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    InvalidPartitionsError,
    MessageSizeTooLargeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from .conftest import NewTopicName, Served

TIMEOUT_S = 30


@pytest.fixture
def consumer(broker: Served) -> Iterator[KafkaConsumer]:
    made = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    yield made
    made.close()


@pytest.fixture
def admin(broker: Served) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield made
    made.close()


def produce(broker: Served, topic: str, messages: list[dict[str, object]], **settings: object) -> list[int]:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, **settings)
    try:
        futures = [producer.send(topic, **message) for message in messages]
        return [future.get(TIMEOUT_S).offset for future in futures]
    finally:
        producer.close()


def take(consumer: KafkaConsumer, count: int) -> list[object]:
    deadline = time.monotonic() + TIMEOUT_S
    found: list[object] = []
    while len(found) < count:
        for records in consumer.poll(timeout_ms=500, max_records=count - len(found)).values():
            found.extend(records)
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came in time"
    return found


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_with_keys_headers_and_timestamps(
    broker: Served, new_topic: NewTopicName, consumer: KafkaConsumer, compression: str | None
) -> None:
    if compression is not None and not getattr(kafka.codec, f"has_{compression}")():
        pytest.skip(f"the package with which kafka-python compresses {compression} is not installed")
    topic = new_topic(configs={"retention.ms": "-1"})
    messages = [
        {
            "key": b"key %d" % n if n % 3 else None,
            "value": b"value %d" % n * 10 if n % 5 != 1 or n % 3 == 0 else None,
            "headers": [("n", b"%d" % n), ("n", b"again")],
            "timestamp_ms": 1_000 + n,
        }
        for n in range(200)
    ]

    offsets = produce(broker, topic, messages, compression_type=compression, linger_ms=20)
    where = TopicPartition(topic, 0)
    consumer.assign([where])
    consumer.seek_to_beginning(where)
    got = take(consumer, len(messages))

    assert offsets == [r.offset for r in got] == list(range(200))
    assert [
        {"key": r.key, "value": r.value, "headers": list(r.headers), "timestamp_ms": r.timestamp} for r in got
    ] == messages


@pytest.mark.parametrize(("acks", "idempotent"), [(0, False), (1, False), ("all", False), ("all", True)])
def test_acks_and_idempotence(
    broker: Served, new_topic: NewTopicName, consumer: KafkaConsumer, acks: int | str, idempotent: bool
) -> None:
    topic = new_topic()

    produce(
        broker, topic, [{"value": b"%d" % n} for n in range(50)], acks=acks, enable_idempotence=idempotent
    )
    consumer.assign([TopicPartition(topic, 0)])

    assert [r.value for r in take(consumer, 50)] == [b"%d" % n for n in range(50)]


def test_positions_ends_and_times(broker: Served, new_topic: NewTopicName, consumer: KafkaConsumer) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    messages = [{"value": b"%d" % n, "timestamp_ms": 1_000 * (n + 1)} for n in range(30)]
    produce(broker, topic, messages)
    where = TopicPartition(topic, 0)
    consumer.assign([where])

    assert consumer.beginning_offsets([where]) == {where: 0}
    assert consumer.end_offsets([where]) == {where: 30}
    found = consumer.offsets_for_times({where: 15_500})[where]
    assert (found.offset, found.timestamp) == (15, 16_000)
    assert consumer.offsets_for_times({where: 99_000}) == {where: None}

    consumer.seek(where, 25)
    assert [r.offset for r in take(consumer, 5)] == [25, 26, 27, 28, 29]
    assert consumer.position(where) == 30


def test_a_message_over_the_limit_is_refused(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"max.message.bytes": "1000"})

    with pytest.raises(MessageSizeTooLargeError):
        produce(broker, topic, [{"value": b"x" * 5_000}])


def test_topics_partitions_and_settings_through_the_admin_client(
    broker: Served, admin: KafkaAdminClient, fresh_name: Callable[[], str]
) -> None:
    topic = fresh_name()

    admin.create_topics(
        {topic: {"num_partitions": 2, "configs": {"retention.ms": "777777"}}}, wait_for_metadata=True
    )
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])
    assert topic in admin.list_topics()

    admin.create_partitions({topic: 4})
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 3})

    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"segment.bytes": "2097152"})
    admin.alter_configs([resource])
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])["topic"][topic]
    assert described["retention.ms"]["value"] == "777777"
    assert described["segment.bytes"]["value"] == "2097152"

    admin.delete_topics([topic])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_cluster_quorum_log_dirs_and_producers_are_described(
    broker: Served, new_topic: NewTopicName, admin: KafkaAdminClient
) -> None:
    topic = new_topic()
    produce(broker, topic, [{"value": b"v"}], enable_idempotence=True, acks="all")
    where = TopicPartition(topic, 0)

    cluster = admin.describe_cluster()
    assert [node["port"] for node in cluster["brokers"]] == [broker.port]

    quorum = admin.describe_metadata_quorum()
    assert quorum["topics"][0]["topic_name"] == "__cluster_metadata"

    [described] = admin.describe_topic_partitions([topic])["topics"]
    assert [p["partition_index"] for p in described["partitions"]] == [0]

    [log_dirs] = admin.describe_log_dirs([topic])
    assert topic in str(log_dirs)

    [producer] = admin.describe_producers([where])[where].active_producers
    assert producer.last_sequence == 0

    specs = {where: OffsetSpec.LATEST}
    assert admin.list_partition_offsets(specs)[where].offset == 1

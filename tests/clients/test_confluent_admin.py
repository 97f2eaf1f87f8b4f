"""confluent-kafka's AdminClient: topics, partitions, settings, cluster, offsets."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from .conftest import NewTopicName, Served
from .librdkafka import produce, read

TIMEOUT_S = 30


@pytest.fixture
def admin(broker: Served) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def error_of(future: Future[object]) -> int:
    with pytest.raises(KafkaException) as caught:
        future.result(TIMEOUT_S)
    return int(caught.value.args[0].code())


def wait_for_topic(admin: AdminClient, topic: str, present: bool) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while (topic in admin.list_topics(timeout=TIMEOUT_S).topics) != present:
        assert time.monotonic() < deadline, f"{topic} is {'missing' if present else 'still there'}"


def test_topics_are_created_listed_and_deleted(admin: AdminClient, fresh_name: Callable[[], str]) -> None:
    topic = fresh_name()

    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(TIMEOUT_S)
    wait_for_topic(admin, topic, present=True)
    assert sorted(admin.list_topics(timeout=TIMEOUT_S).topics[topic].partitions) == [0, 1, 2]

    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    wait_for_topic(admin, topic, present=False)


def test_a_deleted_topic_comes_back_empty(
    broker: Served, admin: AdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    produce(broker.bootstrap, topic, [{"value": b"old"}] * 10)

    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    wait_for_topic(admin, topic, present=False)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    wait_for_topic(admin, topic, present=True)
    produce(broker.bootstrap, topic, [{"value": b"new"}])

    [message] = read(broker.bootstrap, topic, 1)
    assert (message.offset(), message.value()) == (0, b"new")


def test_validating_a_topic_creates_nothing(admin: AdminClient, fresh_name: Callable[[], str]) -> None:
    topic = fresh_name()

    admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic].result(TIMEOUT_S)

    assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_topics_that_cannot_be_created_say_why(admin: AdminClient, new_topic: NewTopicName) -> None:
    existing = new_topic()
    wrong = {
        existing: (NewTopic(existing, 1, 1), KafkaError.TOPIC_ALREADY_EXISTS),
        "bad name": (NewTopic("bad name", 1, 1), KafkaError.TOPIC_EXCEPTION),
        "x" * 250: (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        "three.replicas": (NewTopic("three.replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        "bad.setting": (
            NewTopic("bad.setting", 1, 1, config={"retention.ms": "soon"}),
            KafkaError.INVALID_CONFIG,
        ),
        "unknown.setting": (
            NewTopic("unknown.setting", 1, 1, config={"a.b": "c"}),
            KafkaError.INVALID_CONFIG,
        ),
    }

    futures = admin.create_topics([topic for topic, _ in wrong.values()])

    assert {name: error_of(future) for name, future in futures.items()} == {
        name: code for name, (_, code) in wrong.items()
    }


def test_deleting_an_unknown_topic_is_an_error(admin: AdminClient, fresh_name: Callable[[], str]) -> None:
    topic = fresh_name()
    assert error_of(admin.delete_topics([topic])[topic]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added_and_never_taken_away(
    broker: Served, admin: AdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic(partitions=2)

    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(TIMEOUT_S)
    produce(broker.bootstrap, topic, [{"value": b"v", "partition": 4}])

    assert [m.partition() for m in read(broker.bootstrap, topic, 1, partitions=range(5))] == [4]
    assert (
        error_of(admin.create_partitions([NewPartitions(topic, 5)])[topic]) == KafkaError.INVALID_PARTITIONS
    )
    assert (
        error_of(admin.create_partitions([NewPartitions(topic, 4)])[topic]) == KafkaError.INVALID_PARTITIONS
    )


def settings_of(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return dict(admin.describe_configs([resource])[resource].result(TIMEOUT_S))


def alter(
    admin: AdminClient, topic: str, *changes: tuple[str, str | None, AlterConfigOpType]
) -> Future[None]:
    entries = [ConfigEntry(name, value, incremental_operation=kind) for name, value, kind in changes]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    return admin.incremental_alter_configs([resource])[resource]


def test_a_topics_settings_are_described_with_their_source(
    admin: AdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic(configs={"retention.ms": "123456", "cleanup.policy": "compact"})

    found = settings_of(admin, topic)

    assert found["retention.ms"].value == "123456"
    assert found["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert found["cleanup.policy"].value == "compact"
    assert found["max.message.bytes"].value == "1048588"
    assert found["max.message.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert found["max.message.bytes"].is_default


def test_settings_are_changed_one_by_one(admin: AdminClient, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"retention.ms": "1000000", "segment.ms": "2000000"})
    op = AlterConfigOpType

    alter(admin, topic, ("retention.ms", "3000000", op.SET), ("segment.ms", None, op.DELETE)).result(
        TIMEOUT_S
    )
    found = settings_of(admin, topic)
    assert found["retention.ms"].value == "3000000"
    assert found["segment.ms"].value == "604800000"

    alter(admin, topic, ("cleanup.policy", "compact", op.APPEND)).result(TIMEOUT_S)
    assert settings_of(admin, topic)["cleanup.policy"].value == "delete,compact"
    alter(admin, topic, ("cleanup.policy", "delete", op.SUBTRACT)).result(TIMEOUT_S)
    assert settings_of(admin, topic)["cleanup.policy"].value == "compact"


def test_a_changed_setting_takes_effect_at_once(
    broker: Served, admin: AdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    produce(broker.bootstrap, topic, [{"value": b"x" * 5_000}])

    alter(admin, topic, ("max.message.bytes", "1000", AlterConfigOpType.SET)).result(TIMEOUT_S)

    deadline = time.monotonic() + TIMEOUT_S
    with pytest.raises(KafkaException) as caught:
        while time.monotonic() < deadline:
            produce(broker.bootstrap, topic, [{"value": b"x" * 5_000}])
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_wrong_settings_are_refused(
    admin: AdminClient, new_topic: NewTopicName, fresh_name: Callable[[], str]
) -> None:
    topic = new_topic()
    op = AlterConfigOpType

    assert error_of(alter(admin, topic, ("retention.ms", "soon", op.SET))) == KafkaError.INVALID_CONFIG
    assert error_of(alter(admin, topic, ("no.such", "1", op.SET))) == KafkaError.INVALID_CONFIG
    assert error_of(alter(admin, topic, ("retention.ms", "1", op.APPEND))) == KafkaError.INVALID_CONFIG
    missing = alter(admin, fresh_name(), ("retention.ms", "1", op.SET))
    assert error_of(missing) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_cluster_describes_itself(broker: Served, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(TIMEOUT_S)

    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker.bootstrap]
    assert cluster.controller is not None and cluster.controller.id == cluster.nodes[0].id
    assert len(cluster.cluster_id) == 22


def test_topics_are_described_with_leader_and_replicas(admin: AdminClient, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=2)

    described = admin.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)

    [node] = admin.describe_cluster().result(TIMEOUT_S).nodes
    assert described.topic_id is not None and not described.is_internal
    for partition in described.partitions:
        assert partition.leader.id == node.id
        assert [r.id for r in partition.replicas] == [r.id for r in partition.isr] == [node.id]


def test_offsets_are_listed_by_every_specification(
    broker: Served, admin: AdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    times = [1_000, 9_000, 3_000, 4_000]
    produce(broker.bootstrap, topic, ({"value": b"v", "timestamp": t} for t in times))
    where = TopicPartition(topic, 0)

    def listed(spec: OffsetSpec) -> tuple[int, int]:
        result = admin.list_offsets({where: spec})[where].result(TIMEOUT_S)
        return result.offset, result.timestamp

    assert listed(OffsetSpec.earliest()) == (0, -1)
    assert listed(OffsetSpec.latest()) == (4, -1)
    assert listed(OffsetSpec.max_timestamp()) == (1, 9_000)
    assert listed(OffsetSpec.for_timestamp(2_000)) == (1, 9_000)
    assert listed(OffsetSpec.for_timestamp(10_000)) == (-1, -1)

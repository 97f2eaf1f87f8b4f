"""confluent-kafka's and kafka-python's admin clients on what runs: brokers, groups, features, elections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient

from barnabas.testing.waiting import wait_until

from .conftest import NewTopicName, Served

TIMEOUT_S = 30
SETTING = "log.cleaner.backoff.ms"


@pytest.fixture
def admin(broker: Served) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def python_admin(broker: Served) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def described(admin: AdminClient, resource: ConfigResource) -> dict[str, ConfigEntry]:
    return dict(admin.describe_configs([resource])[resource].result(TIMEOUT_S))


def change(admin: AdminClient, kind: ResourceType, resource: str, name: str, value: str | None) -> None:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=operation)
    wanted = ConfigResource(kind, resource, incremental_configs=[entry])
    admin.incremental_alter_configs([wanted])[wanted].result(TIMEOUT_S)


def test_a_brokers_settings_are_all_described(admin: AdminClient) -> None:
    found = described(admin, ConfigResource(ResourceType.BROKER, "1"))
    assert len([name for name in found if not name.startswith(("barnabas.", "confluent."))]) >= 338
    assert found["node.id"].is_read_only
    assert found["ssl.key.password"].is_sensitive and found["ssl.key.password"].value is None
    assert found["log.retention.ms"].value is None


def test_a_brokers_setting_is_changed_while_it_runs(admin: AdminClient) -> None:
    broker = ConfigResource(ResourceType.BROKER, "1")
    change(admin, ResourceType.BROKER, "1", SETTING, "14000")
    wait_until(lambda: described(admin, broker)[SETTING].value == "14000")
    entry = described(admin, broker)[SETTING]
    assert entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG.value
    change(admin, ResourceType.BROKER, "1", SETTING, None)
    wait_until(lambda: described(admin, broker)[SETTING].value == "15000")


@pytest.mark.parametrize(
    ("name", "value"),
    [("node.id", "7"), (SETTING, "soon"), ("num.io.threads", "1000"), ("log.segment.bytes", "1")],
)
def test_what_a_broker_cannot_become_is_refused(admin: AdminClient, name: str, value: str) -> None:
    with pytest.raises(KafkaException) as caught:
        change(admin, ResourceType.BROKER, "1", name, value)
    error: KafkaError = caught.value.args[0]
    assert error.code() == KafkaError.INVALID_REQUEST
    assert name in error.str()


def test_a_leader_that_is_the_preferred_one_is_not_elected_again(
    admin: AdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic(2)
    found = admin.elect_leaders(
        ElectionType.PREFERRED, [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    ).result(TIMEOUT_S)
    assert {error.code() for error in found.values()} == {KafkaError.ELECTION_NOT_NEEDED}


def test_kafka_python_describes_and_changes_a_broker(python_admin: KafkaAdminClient) -> None:
    kind = ConfigResourceType.BROKER

    def shown() -> str:
        found = python_admin.describe_configs([PythonResource(kind, "1")], config_filter="all")
        return str(found["broker"]["1"][SETTING]["value"])

    assert shown() == "15000"
    python_admin.alter_configs([PythonResource(kind, "1", {SETTING: "13000"})])
    wait_until(lambda: shown() == "13000")
    python_admin.reset_configs([PythonResource(kind, "1", {SETTING: None})])
    wait_until(lambda: shown() == "15000")


def test_kafka_python_lists_what_can_be_configured(
    python_admin: KafkaAdminClient, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    listed = python_admin.list_config_resources()
    assert topic in repr(listed)


def test_kafka_python_describes_features(python_admin: KafkaAdminClient) -> None:
    assert "metadata.version" in repr(python_admin.describe_features())

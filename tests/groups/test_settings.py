"""Settings of the coordinator come from the node's, under Kafka's names."""

from __future__ import annotations

from barnabas.groups.basics.settings import GroupSettings
from barnabas.settings import BrokerSettings

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}


def test_defaults_are_those_of_a_node() -> None:
    assert GroupSettings.of(BrokerSettings.load(BASE)) == GroupSettings()


def test_values_are_read_under_kafkas_names() -> None:
    changed = {
        "group.initial.rebalance.delay.ms": "7",
        "group.min.session.timeout.ms": "1000",
        "group.max.size": "12",
        "offsets.retention.minutes": "2",
        "offset.metadata.max.bytes": "99",
        "group.consumer.migration.policy": "UPGRADE",
    }
    settings = GroupSettings.of(BrokerSettings.load(BASE | changed))
    assert settings.initial_rebalance_delay_ms == 7
    assert settings.session_timeout_ms_min == 1000
    assert settings.group_size_max == 12
    assert settings.offsets_retention_ms == 120_000
    assert settings.offset_metadata_bytes_max == 99
    assert settings.consumer_migration_policy == "upgrade"

"""DescribeConfigs compared with Apache Kafka 4.3.1, entry by entry: values, sources, types, synonyms."""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.settings import BrokerSettings
from barnabas.settings.describe import (
    Entry,
    Source,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from barnabas.settings.properties import parse

from .nodes import COMBINED

DATA = Path(__file__).parent / "data"
TUNED = {"retention.ms": "1000", "cleanup.policy": "compact, delete", "min.insync.replicas": " 1"}
# A cluster formatted with eligible leader replicas starts with this one.
AT_FORMAT = {"min.insync.replicas": "1"}
CHANGED_DEFAULT = {**AT_FORMAT, "log.segment.bytes": "2097152", "log.retention.ms": " 7200000"}
CHANGED_BROKER = {
    "log.roll.ms": "9000000",
    "listener.name.plaintext.max.connections": "55",
    "log.cleaner.threads": "1",
}


def as_recorded(entries: list[Entry]) -> dict[str, list[Any]]:
    return {
        entry.name: [
            entry.name,
            entry.value,
            entry.read_only,
            entry.source,
            entry.sensitive,
            entry.type,
            [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms],
        ]
        for entry in entries
        if not entry.name.startswith(("barnabas.", "confluent."))
    }


def all_entries(settings: BrokerSettings) -> dict[str, dict[str, list[Any]]]:
    return {
        "topic plain": as_recorded(describe_topic({}, settings)),
        "topic tuned": as_recorded(describe_topic(TUNED, settings)),
        "broker 1": as_recorded(describe_broker(settings)),
        "cluster default": as_recorded(describe_cluster_default(settings)),
        "group g": as_recorded(describe_group({}, settings)),
    }


RESOURCES = ["topic plain", "topic tuned", "broker 1", "cluster default", "group g"]


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_fresh_node_describes_itself_as_kafka_does(resource: str) -> None:
    recorded = json.loads((DATA / "described.json").read_text())
    settings = BrokerSettings.load(parse("\n".join(recorded["properties"])))
    found = all_entries(settings.with_dynamic(AT_FORMAT, {}))[resource]
    assert found == {entry[0]: entry for entry in recorded[resource]}


@pytest.mark.parametrize("resource", RESOURCES[:-1])
def test_odd_and_changed_values_are_described_as_kafka_does(resource: str) -> None:
    """The file holds what differs from a fresh node: odd spellings, unknown names, changes while running."""
    recorded = json.loads((DATA / "described_after_changes.json").read_text())
    settings = BrokerSettings.load(parse("\n".join(recorded["properties"])))
    found = all_entries(settings.with_dynamic(CHANGED_DEFAULT, CHANGED_BROKER))[resource]
    expected = {entry[0]: entry for entry in recorded[resource]}
    assert expected
    assert {name: found[name] for name in expected} == expected


def test_only_the_named_settings_are_described() -> None:
    settings = BrokerSettings.load(COMBINED)
    assert [entry.name for entry in describe_topic({}, settings, ["segment.ms", "nope"])] == ["segment.ms"]
    assert [entry.name for entry in describe_broker(settings, ["node.id"])] == ["node.id"]


def test_no_secret_is_described() -> None:
    secrets = {"ssl.key.password": "s3cret", "listener.name.plaintext.plain.sasl.jaas.config": "s3cret"}
    settings = BrokerSettings.load({**COMBINED, **secrets, "some.plugin.password": "s3cret"})
    assert "s3cret" not in repr(describe_broker(settings))
    assert "s3cret" not in repr(describe_cluster_default(settings.with_dynamic(secrets, {})))


def test_a_groups_own_value_comes_first() -> None:
    [entry] = describe_group(
        {"consumer.session.timeout.ms": "50000"},
        BrokerSettings.load(COMBINED),
        ["consumer.session.timeout.ms"],
    )
    assert (entry.value, entry.source) == ("50000", Source.GROUP)
    assert [synonym.name for synonym in entry.synonyms] == [
        "consumer.session.timeout.ms",
        "group.consumer.session.timeout.ms",
    ]


def test_settings_are_documented() -> None:
    [entry] = describe_topic({}, BrokerSettings.load(COMBINED), ["retention.ms"])
    assert entry.documentation == "Milliseconds records are kept; -1 keeps them for ever."

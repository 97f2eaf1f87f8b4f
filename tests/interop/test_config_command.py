"""Kafka's own ConfigCommand and its relatives change what runs: topics, brokers, groups, quotas, loggers."""

from __future__ import annotations

import pytest

from barnabas.testing import apache

from .conftest import Node
from .test_kafka_tools import make_topic, tool, topics

# `tests/cli/transcripts` has what the tool prints; this runs it again.
pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.usefixtures("java")]
CONFIGS = "kafka.admin.ConfigCommand"


def configs(node: Node, *args: str) -> str:
    return tool(CONFIGS, "--bootstrap-server", node.bootstrap, *args)


def refused(node: Node, *args: str) -> str:
    done = apache.tool(CONFIGS, "--bootstrap-server", node.bootstrap, *args)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def test_a_topics_settings_are_added_described_and_removed(node: Node) -> None:
    name = make_topic(node, "configs.topic")
    entity = ("--entity-type", "topics", "--entity-name", name)
    assert f"Completed updating config for topic {name}." in configs(
        node, "--alter", *entity, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"
    )
    described = configs(node, "--describe", *entity)
    assert "retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in described
    assert "cleanup.policy=compact,delete" in described
    everything = configs(node, "--describe", *entity, "--all").splitlines()
    assert len([line for line in everything if not line.startswith(("  barnabas.", "  confluent."))]) == 34
    configs(node, "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    assert "retention.ms" not in configs(node, "--describe", *entity)
    assert "Unknown topic config name: no.such" in refused(
        node, "--alter", *entity, "--add-config", "no.such=1"
    )
    topics(node, "--delete", "--topic", name)


def test_brokers_have_settings_of_their_own_and_of_all(node: Node) -> None:
    mine = ("--entity-type", "brokers", "--entity-name", "1")
    everyones = ("--entity-type", "brokers", "--entity-default")
    configs(node, "--alter", *everyones, "--add-config", "log.cleaner.backoff.ms=14000")
    configs(node, "--alter", *mine, "--add-config", "log.cleaner.backoff.ms=13000")
    described = configs(node, "--describe", *mine)
    assert (
        "log.cleaner.backoff.ms=13000 sensitive=false "
        "synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.backoff.ms=13000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.backoff.ms=14000, "
        "DEFAULT_CONFIG:log.cleaner.backoff.ms=15000}"
    ) in described
    assert "log.cleaner.backoff.ms=14000" in configs(node, "--describe", *everyones)
    configs(node, "--alter", *mine, "--delete-config", "log.cleaner.backoff.ms")
    configs(node, "--alter", *everyones, "--delete-config", "log.cleaner.backoff.ms")
    assert "log.cleaner.backoff.ms" not in configs(node, "--describe", *mine)
    assert "Cannot update these configs dynamically: [node.id]" in refused(
        node, "--alter", *mine, "--add-config", "node.id=7"
    )


def test_secrets_are_taken_and_not_shown(node: Node) -> None:
    mine = ("--entity-type", "brokers", "--entity-name", "1")
    name = "listener.name.nowhere.ssl.keystore.password"
    configs(node, "--alter", *mine, "--add-config", f"{name}=s3cret")
    described = configs(node, "--describe", *mine)
    assert f"{name}=null sensitive=true" in described
    assert "s3cret" not in described
    configs(node, "--alter", *mine, "--delete-config", name)


@pytest.mark.parametrize(
    ("named", "config", "said"),
    [
        ("--user u", "producer_byte_rate=1048576", "user-principal 'u'"),
        ("--client-defaults", "consumer_byte_rate=9000000", "the default client-id"),
        ("--user u --client c", "controller_mutation_rate=500", "user-principal 'u', client-id 'c'"),
        ("--ip 127.0.0.9", "connection_creation_rate=50", "ip '127.0.0.9'"),
    ],
)
def test_quotas_are_set_described_and_removed(node: Node, named: str, config: str, said: str) -> None:
    entity = named.split()
    key, _, value = config.partition("=")
    configs(node, "--alter", *entity, "--add-config", config)
    described = configs(node, "--describe", *entity)
    assert f"Quota configs for {said} are {key}={float(value)}" in described
    configs(node, "--alter", *entity, "--delete-config", key)
    assert key not in configs(node, "--describe", *entity)


def test_groups_and_client_metrics_have_settings(node: Node) -> None:
    group = ("--entity-type", "groups", "--entity-name", "configs.group")
    configs(node, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in configs(node, "--describe", *group)
    configs(node, "--alter", *group, "--delete-config", "consumer.session.timeout.ms")

    bootstrap = ("--bootstrap-server", node.bootstrap, "--name", "configs.subscription")
    tool(
        "ClientMetricsCommand", *bootstrap, "--alter", "--metrics", "org.apache.kafka.producer.",
        "--interval", "30000", "--match", "client_id=a",
    )  # fmt: skip
    described = tool("ClientMetricsCommand", *bootstrap, "--describe")
    assert "interval.ms=30000" in described
    assert "metrics=org.apache.kafka.producer." in described
    assert "configs.subscription" in tool("ClientMetricsCommand", *bootstrap[:2], "--list")
    tool("ClientMetricsCommand", *bootstrap, "--delete")
    assert "configs.subscription" not in tool("ClientMetricsCommand", *bootstrap[:2], "--list")


def test_loggers_have_levels(node: Node) -> None:
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    assert "root=" in configs(node, "--describe", *loggers)
    before = configs(node, "--describe", *loggers)
    level = next(line for line in before.splitlines() if line.strip().startswith("root=")).split("=")[1]
    configs(node, "--alter", *loggers, "--add-config", f"root={level.split()[0]}")
    assert "Invalid broker logger(s): no.such" in refused(
        node, "--alter", *loggers, "--add-config", "no.such=INFO"
    )


def test_features_are_described_and_updates_checked(node: Node) -> None:
    bootstrap = ("--bootstrap-server", node.bootstrap)
    described = tool("FeatureCommand", *bootstrap, "describe")
    assert "Feature: metadata.version" in described
    downgraded = apache.tool(
        "org.apache.kafka.tools.FeatureCommand", *bootstrap, "downgrade", "--dry-run", "--feature",
        "metadata.version=7",
    )  # fmt: skip
    assert downgraded.returncode != 0
    assert "might delete metadata" in downgraded.stdout + downgraded.stderr
    assert "group.version" in tool(
        "FeatureCommand", *bootstrap, "downgrade", "--dry-run", "--feature", "group.version=0"
    )


def test_leaders_need_no_election(node: Node) -> None:
    name = make_topic(node, "configs.elected")
    said = tool(
        "LeaderElectionCommand", "--bootstrap-server", node.bootstrap, "--election-type", "preferred",
        "--topic", name, "--partition", "0",
    )  # fmt: skip
    assert f"Valid replica already elected for partitions {name}-0" in said
    topics(node, "--delete", "--topic", name)

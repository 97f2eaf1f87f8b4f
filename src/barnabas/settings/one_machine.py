"""Settings for a cluster of one node: its own quorum, internal topics with one replica.

In: ports, or a node's settings and the number of brokers. Out: properties of such a node; the values for new
internal topics, and a log line if they differ from Kafka's defaults. Configured values and DescribeConfigs
are not changed.
"""

from __future__ import annotations

from barnabas.settings.broker import BrokerSettings

INTERNAL_TOPIC_SETTINGS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)


def one_node_properties(port: int, controller_port: int, node_id: int = 1) -> dict[str, str]:
    """Properties of one node, broker and controller, that listens on the loopback address only."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@127.0.0.1:{controller_port}",
        **dict.fromkeys(INTERNAL_TOPIC_SETTINGS, "1"),
    }


def internal_topic_settings(settings: BrokerSettings, brokers: int) -> tuple[dict[str, int], list[str]]:
    """The values of these settings for a cluster of this size, and log lines about changed ones."""
    values: dict[str, int] = {}
    said: list[str] = []
    for name in INTERNAL_TOPIC_SETTINGS:
        values[name] = settings[name]
        if brokers == 1 and values[name] > 1 and not settings.is_set(name):
            said.append(f"{name} is 1, not {values[name]}: the cluster has one broker.")
            values[name] = 1
    return values, said

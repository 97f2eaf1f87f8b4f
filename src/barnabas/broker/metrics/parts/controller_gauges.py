"""Metrics of the controller of a node, under Kafka's names. Nodes without a controller show the cluster's
counts alone, so that a dashboard of one broker is not empty.

In: the node's controller, the metadata image. Out: sources registered with the metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.cluster_counts import Counting

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

CONTROLLER = "kafka.controller", "KafkaController"


def register(broker: Broker) -> None:
    metrics = broker.metrics
    counting = Counting(lambda: broker.image, broker.pieces)
    metrics.gauge(
        *CONTROLLER,
        "ActiveControllerCount",
        "1 on the active controller.",
        lambda: int(broker.controller_id == broker.node_id),
    )
    metrics.gauge(
        *CONTROLLER,
        "GlobalTopicCount",
        "Topics of the cluster.",
        lambda: len(broker.image.topics.by_name),
    )
    metrics.gauge(
        *CONTROLLER,
        "GlobalPartitionCount",
        "Partitions of the cluster.",
        lambda: counting.counts().partitions,
    )
    metrics.gauge(
        *CONTROLLER,
        "OfflinePartitionsCount",
        "Partitions of the cluster without a leader.",
        lambda: counting.counts().offline,
    )
    metrics.gauge(
        *CONTROLLER,
        "PreferredReplicaImbalanceCount",
        "Partitions of the cluster that another than their preferred replica leads.",
        lambda: counting.counts().imbalanced,
    )
    metrics.gauge(
        *CONTROLLER,
        "ActiveBrokerCount",
        "Brokers that are registered and not fenced.",
        lambda: sum(not each.fenced for each in broker.image.cluster.brokers.values()),
    )
    metrics.gauge(
        *CONTROLLER,
        "FencedBrokerCount",
        "Brokers that are registered and fenced.",
        lambda: sum(each.fenced for each in broker.image.cluster.brokers.values()),
    )
    metrics.gauge(
        *CONTROLLER,
        "ControlledShutdownBrokerCount",
        "Brokers in controlled shutdown.",
        lambda: sum(each.in_controlled_shutdown for each in broker.image.cluster.brokers.values()),
    )

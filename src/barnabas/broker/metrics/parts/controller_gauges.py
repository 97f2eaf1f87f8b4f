"""Metrics of the controller of a node, under Kafka's names. Nodes without a controller show the cluster's
counts alone, so that a dashboard of one broker is not empty.

In: the node's controller, the metadata image. Out: sources registered with the metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.parts.cluster_counts import Counting
from barnabas.broker.metrics.parts.metadata_gauges import IGNORED, ignored_static_voters
from barnabas.broker.metrics.parts.totals import NS_PER_MS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.quorum.controller import Controller

CONTROLLER = "kafka.controller", "KafkaController"
STATS = "kafka.controller", "ControllerStats"
EVENTS = "kafka.controller", "ControllerEventManager"


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
    if broker.own_controller is not None:
        own(broker, broker.own_controller)


def own(broker: Broker, controller: Controller) -> None:
    """Metrics of nodes with a controller."""
    metrics, stats, log = broker.metrics, controller.stats, broker.quorum.log
    metrics.counter(
        *STATS, "UncleanLeaderElectionsPerSec", "Leaders elected uncleanly.", lambda: stats.unclean_elections
    )
    metrics.counter(
        *STATS,
        "ElectionFromEligibleLeaderReplicasPerSec",
        "Leaders elected among the eligible leader replicas.",
        lambda: stats.eligible_elections,
    )
    for name, help, value in (
        ("LastCommittedRecordOffset", "Where committed metadata ends.", lambda: log.high_watermark - 1),
        ("MetadataErrorCount", "Times that applying metadata failed.", lambda: log.listener_errors),
        ("EventQueueOperationsStartedCount", "Decisions that were begun.", lambda: stats.operations),
        ("EventQueueOperationsTimedOutCount", "Decisions that timed out.", lambda: stats.timed_out),
        ("TimedOutBrokerHeartbeatCount", "Brokers fenced as silent.", lambda: stats.timed_out_heartbeats),
        ("NewActiveControllersCount", "Times that this controller became active.", lambda: stats.activations),
        ("IgnoredStaticVoters", IGNORED, lambda: ignored_static_voters(broker)),
    ):
        metrics.gauge(*CONTROLLER, name, help, value)
    metrics.gauges(
        *CONTROLLER,
        "TimeSinceLastHeartbeatReceivedMs",
        "Time since the last heartbeat of a broker, on the active controller.",
        lambda: [((("broker", str(id)),), silent) for id, silent in controller.silent_ms().items()],
    )
    metrics.gauges(
        *CONTROLLER,
        "BrokerRegistrationState",
        "10 fenced, 20 in controlled shutdown, 30 active.",
        lambda: [
            ((("broker", str(id)),), 10 if each.fenced else 20 if each.in_controlled_shutdown else 30)
            for id, each in broker.image.cluster.brokers.items()
        ],
    )
    for name, help, histogram in (
        ("EventQueueTimeMs", "Time that a decision waited for earlier ones.", stats.queued),
        (
            "EventQueueProcessingTimeMs",
            "Time of a decision until its records were applied.",
            stats.processing,
        ),
    ):
        metrics.adopt(histogram)
        metrics.show_histograms(*EVENTS, name, help, lambda histogram=histogram: [((), histogram)], NS_PER_MS)  # type: ignore[misc]

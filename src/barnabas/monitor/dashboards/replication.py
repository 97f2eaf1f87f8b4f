"""The dashboard of replication: in-sync replicas, followers' lag, traffic between brokers, reassignments."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import Dashboard, Panel, Query, Row, counter_rate
from barnabas.monitor.dashboards.variables import NODES

REPLICAS = "kafka.server:type=ReplicaManager,name"
TOPICS = "kafka.server:type=BrokerTopicMetrics,name"


def gauge(title: str, name: str, help: str) -> Panel:
    return Panel(title, [Query(f"<g {REPLICAS}={name}>{{[[S]]}}", "{{instance}}")], help)


def changes(title: str, name: str, help: str) -> Panel:
    return Panel(
        title, [counter_rate(f"{REPLICAS}={name}", "[[S]]", "instance", "{{instance}}")], help, "cps"
    )


REPLICATION = Dashboard(
    "replication",
    "replication",
    "In-sync replicas, lag of followers, traffic between brokers.",
    (
        Row(
            "In-sync replicas",
            [
                gauge(
                    "Under-replicated",
                    "UnderReplicatedPartitions",
                    "Partitions with replicas that are not in sync.",
                ),
                gauge("Under min ISR", "UnderMinIsrPartitionCount", "Partitions that refuse acks=all."),
                gauge("At min ISR", "AtMinIsrPartitionCount", "Partitions that can lose no more replicas."),
                changes("ISR shrinks", "IsrShrinksPerSec", "Replicas that fell out of sync."),
                changes("ISR expands", "IsrExpandsPerSec", "Replicas that came back in sync."),
                changes(
                    "Failed ISR updates", "FailedIsrUpdatesPerSec", "Changes that the controller refused."
                ),
            ],
        ),
        Row(
            "Followers",
            [
                Panel(
                    "Largest lag of followers",
                    [
                        Query(
                            "max by (instance) (<g kafka.server:type=ReplicaFetcherManager,name=MaxLag>"
                            '{[[S]],@clientId="Replica"})',
                            "{{instance}}",
                        )
                    ],
                    "Records by which the slowest partition of a follower is behind its leader.",
                ),
                Panel(
                    "Replication in",
                    [counter_rate(f"{TOPICS}=ReplicationBytesInPerSec", "[[S]]", "instance", "{{instance}}")],
                    "Bytes of records that followers fetched.",
                    "Bps",
                ),
                Panel(
                    "Replication out",
                    [
                        counter_rate(
                            f"{TOPICS}=ReplicationBytesOutPerSec", "[[S]]", "instance", "{{instance}}"
                        )
                    ],
                    "Bytes of records that leaders sent to followers.",
                    "Bps",
                ),
                Panel(
                    "FetchFollower, 99 of 100",
                    [
                        Query(
                            "max by (instance) (<h kafka.network:type=RequestMetrics,name=TotalTimeMs>"
                            '{[[S]],request="FetchFollower",quantile="0.99"})',
                            "{{instance}}",
                        )
                    ],
                    "Fetches of followers. They wait for records up to replica.fetch.wait.max.ms.",
                    "ms",
                ),
                gauge("Offline replicas", "OfflineReplicaCount", "Replicas whose log dir failed."),
                gauge("Reassigning", "ReassigningPartitions", "Partitions that move to other brokers."),
            ],
        ),
    ),
    NODES,
)

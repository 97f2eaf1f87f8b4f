"""The dashboard of a cluster as a whole: is it healthy, how much goes through, which limits are near."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import STAT, Dashboard, Panel, Query, Row, but_zero, counter_rate
from barnabas.monitor.dashboards.variables import BYTES_IN, JOB, STATE

TOPICS = "kafka.server:type=BrokerTopicMetrics,name"
REPLICAS = "kafka.server:type=ReplicaManager,name"
CONTROLLER = "kafka.controller:type=KafkaController,name"
ALL = '[[J]],topic=""'


def number(title: str, query: str, help: str, red_above: float | None = None) -> Panel:
    return Panel(title, [Query(query)], help, kind=STAT, width=4, height=4, red_above=red_above)


HEALTH = Row(
    "Health",
    [
        number("Brokers", f"count({STATE}{{[[J]]}} == 3)", "Brokers that run (state 3)."),
        number(
            "Active controllers",
            f"sum(<g {CONTROLLER}=ActiveControllerCount>{{[[J]]}})",
            "Exactly 1. 0: no leader is elected. 2: for a moment during an election.",
            1.5,
        ),
        number(
            "Offline partitions",
            f"max(<g {CONTROLLER}=OfflinePartitionsCount>{{[[J]]}})",
            "Partitions without a leader: nobody can produce to them or fetch from them.",
            0.5,
        ),
        number(
            "Under min ISR",
            f"sum(<g {REPLICAS}=UnderMinIsrPartitionCount>{{[[J]]}})",
            "Partitions that refuse acks=all, because too few replicas are in sync.",
            0.5,
        ),
        number(
            "Under-replicated",
            f"sum(<g {REPLICAS}=UnderReplicatedPartitions>{{[[J]]}})",
            "Partitions with replicas that are not in sync. More than 0 is usual while a broker restarts.",
            0.5,
        ),
        number(
            "Offline log dirs",
            "sum(<g kafka.log:type=LogManager,name=OfflineLogDirectoryCount>{[[J]]})",
            "Log dirs whose disk failed.",
            0.5,
        ),
        number("Topics", f"max(<g {CONTROLLER}=GlobalTopicCount>{{[[J]]}})", "Topics of the cluster."),
        number(
            "Partitions",
            f"max(<g {CONTROLLER}=GlobalPartitionCount>{{[[J]]}})",
            "Partitions of the cluster, replicas not counted.",
        ),
        number(
            "Fenced brokers",
            f"max(<g {CONTROLLER}=FencedBrokerCount>{{[[J]]}})",
            "Registered brokers that send no heartbeats.",
            0.5,
        ),
        number(
            "Unclean elections",
            "sum(increase(<c kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec>"
            "{[[J]]}[1h]))",
            "Leaders elected in the last hour although they may lack records: records were lost.",
            0.5,
        ),
        number(
            "Preferred replica imbalance",
            f"max(<g {CONTROLLER}=PreferredReplicaImbalanceCount>{{[[J]]}})",
            "Partitions that another replica leads than the preferred one.",
        ),
        number(
            "Unexpected errors",
            "sum(<g barnabas:type=Node,name=UnexpectedErrors>{[[J]]})",
            "Exceptions that no code foresaw. More than 0 is a bug; the log has its traceback.",
            0.5,
        ),
    ],
)
TRAFFIC = Row(
    "Traffic",
    [
        Panel(
            "Bytes",
            [
                counter_rate(BYTES_IN, ALL, legend="in"),
                counter_rate(f"{TOPICS}=BytesOutPerSec", ALL, legend="out"),
                counter_rate(f"{TOPICS}=ReplicationBytesInPerSec", "[[J]]", legend="replication in"),
            ],
            "Bytes of records produced, fetched by consumers, and fetched by followers.",
            "Bps",
        ),
        Panel(
            "Messages",
            [counter_rate(f"{TOPICS}=MessagesInPerSec", ALL, legend="in")],
            "Records produced.",
            "cps",
        ),
        Panel(
            "Requests",
            [
                but_zero(
                    counter_rate(
                        "kafka.network:type=RequestMetrics,name=RequestsPerSec",
                        "[[J]]",
                        "request",
                        "{{request}}",
                    )
                )
            ],
            "Requests that got a response, by API.",
            "reqps",
        ),
        Panel(
            "Refused",
            [
                counter_rate(f"{TOPICS}=FailedProduceRequestsPerSec", ALL, legend="produce"),
                counter_rate(f"{TOPICS}=FailedFetchRequestsPerSec", ALL, legend="fetch"),
            ],
            "Writes and fetches of partitions that failed.",
            "cps",
        ),
        Panel(
            "Bytes in by broker",
            [counter_rate(BYTES_IN, ALL, "instance", "{{instance}}")],
            "Lines far apart mean that leaders are placed badly.",
            "Bps",
        ),
        Panel(
            "Leaders by broker",
            [Query(f"<g {REPLICAS}=LeaderCount>{{[[J]]}}", "{{instance}}")],
            "Partitions that each broker leads.",
        ),
    ],
)
LATENCY = Row(
    "Latency",
    [
        Panel(
            f"{request}, 99 of 100",
            [
                Query(
                    "max by (instance) (<h kafka.network:type=RequestMetrics,name=TotalTimeMs>"
                    f'{{[[J]],request="{request}",quantile="0.99"}})',
                    "{{instance}}",
                )
            ],
            "Time from request to response of the slowest hundredth, in ms.",
            "ms",
        )
        for request in ("Produce", "FetchConsumer", "FetchFollower")
    ],
)
CLUSTER = Dashboard(
    "cluster",
    "cluster",
    "Health, traffic and latency of a cluster.",
    (HEALTH, TRAFFIC, LATENCY),
    (JOB,),
)

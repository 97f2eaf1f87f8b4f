"""The dashboard of topics: traffic, sizes, partitions."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import TABLE, Dashboard, Panel, Query, Row, counter_rate
from barnabas.monitor.dashboards.variables import BYTES_IN, JOB, OF_TOPICS, TOPIC

TOPICS = "kafka.server:type=BrokerTopicMetrics,name"
LOG = "kafka.log:type=Log,name"
PARTITION = "kafka.cluster:type=Partition,name"


def by_topic(title: str, name: str, help: str, unit: str) -> Panel:
    query = counter_rate(f"{TOPICS}={name}", OF_TOPICS, "topic", "{{topic}}")
    return Panel(title, [query], help, unit)


TOPICS_DASHBOARD = Dashboard(
    "topics",
    "topics",
    "Traffic, sizes and partitions of topics.",
    (
        Row(
            "Traffic",
            [
                Panel(
                    "Bytes in",
                    [counter_rate(BYTES_IN, OF_TOPICS, "topic", "{{topic}}")],
                    "Bytes of records produced.",
                    "Bps",
                ),
                by_topic("Bytes out", "BytesOutPerSec", "Bytes of records that consumers fetched.", "Bps"),
                by_topic("Messages in", "MessagesInPerSec", "Records produced.", "cps"),
                by_topic("Produce requests", "TotalProduceRequestsPerSec", "Writes to partitions.", "reqps"),
                by_topic("Fetch requests", "TotalFetchRequestsPerSec", "Fetches of partitions.", "reqps"),
                by_topic(
                    "Failed produce requests", "FailedProduceRequestsPerSec", "Writes refused.", "reqps"
                ),
            ],
        ),
        Row(
            "Storage",
            [
                Panel(
                    "Size",
                    [Query(f"sum by (topic) (<g {LOG}=Size>{{{OF_TOPICS}}})", "{{topic}}")],
                    "Bytes of all replicas of a topic.",
                    "bytes",
                ),
                Panel(
                    "Records kept",
                    [
                        Query(
                            "sum by (topic) "
                            f"(max by (topic, partition) (<g {LOG}=LogEndOffset>{{{OF_TOPICS}}})"
                            f" - max by (topic, partition) (<g {LOG}=LogStartOffset>{{{OF_TOPICS}}}))",
                            "{{topic}}",
                        )
                    ],
                    "Offsets between the start and the end of the logs.",
                ),
                Panel(
                    "Segments",
                    [Query(f"sum by (topic) (<g {LOG}=NumLogSegments>{{{OF_TOPICS}}})", "{{topic}}")],
                    "Segments of all replicas.",
                ),
            ],
        ),
        Row(
            "Partitions",
            [
                Panel(
                    "Largest partitions",
                    [Query(f"topk(20, max by (topic, partition) (<g {LOG}=Size>{{{OF_TOPICS}}}))")],
                    "Bytes of the largest partitions: a hot key shows here.",
                    "bytes",
                    TABLE,
                    width=12,
                    column="size",
                ),
                Panel(
                    "Busiest partitions",
                    [
                        Query(
                            "topk(20, max by (topic, partition) "
                            f"(rate(<g {LOG}=LogEndOffset>{{{OF_TOPICS}}}[$__rate_interval])))"
                        )
                    ],
                    "Records a second of the busiest partitions.",
                    "cps",
                    TABLE,
                    width=12,
                    column="records a second",
                ),
                Panel(
                    "Under min ISR",
                    [Query(f"sum by (topic) (<g {PARTITION}=UnderMinIsr>{{{OF_TOPICS}}})", "{{topic}}")],
                    "Partitions that refuse acks=all.",
                ),
                Panel(
                    "Under-replicated",
                    [Query(f"sum by (topic) (<g {PARTITION}=UnderReplicated>{{{OF_TOPICS}}})", "{{topic}}")],
                    "Partitions with replicas that are not in sync.",
                ),
                Panel(
                    "Partitions",
                    [
                        Query(
                            f"count by (topic) (max by (topic, partition) (<g {LOG}=Size>{{{OF_TOPICS}}}))",
                            "{{topic}}",
                        )
                    ],
                    "Partitions of each topic.",
                ),
            ],
        ),
    ),
    (JOB, TOPIC),
)

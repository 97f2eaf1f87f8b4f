"""Metrics in the names of OpenTelemetry's receiver for Kafka, with underscores where it has dots.

In: the lag of clusters. Out: families of a page. Where several clusters are shown, each sample gets a label
`cluster`. Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import Group
from barnabas.monitor.lag.topics import UNKNOWN, Topic
from barnabas.monitor.lag_metrics.page import Page, escaped


def write(page: Page, clusters: Sequence[ClusterLag], now_ms: int) -> Steps[None]:
    for cluster in clusters:
        extra = f'cluster="{escaped(cluster.name)}",' if len(clusters) > 1 else ""
        labels = f"{{{extra.rstrip(',')}}}" if extra else ""
        brokers = page.family("kafka_brokers", "Brokers of the cluster.")
        brokers.append(f"kafka_brokers{labels} {len(cluster.brokers)}")
        yield
        for topic in list(cluster.topics.values()):
            if topic.is_known and cluster.shows_topic(topic.name):
                write_topic(page, topic, extra)
                yield
        for group in list(cluster.groups.values()):
            write_group(page, group, extra)
            yield


def write_topic(page: Page, topic: Topic, extra: str) -> None:
    labels = f'{extra}topic="{escaped(topic.name)}"'
    count = page.family("kafka_topic_partitions", "Partitions of a topic.")
    count.append(f"kafka_topic_partitions{{{labels}}} {len(topic.partitions)}")
    for index, offsets in enumerate(topic.partitions):
        where = offsets.placement
        for name, text, value in (
            ("current_offset", "End of a partition.", offsets.end),
            ("oldest_offset", "Start of a partition.", offsets.start),
            ("replicas", "Replicas of a partition.", len(where.replicas)),
            ("replicas_in_sync", "Replicas in sync of a partition.", len(where.in_sync)),
        ):
            lines = page.family(f"kafka_partition_{name}", text)
            if value != UNKNOWN:
                lines.append(f'kafka_partition_{name}{{{labels},partition="{index}"}} {value}')


def write_group(page: Page, group: Group, extra: str) -> None:
    prefix = "kafka_consumer_group"
    labels = f'{extra}group="{escaped(group.group_id)}"'
    members = page.family(f"{prefix}_members", "Members of a group.")
    members.append(f"{prefix}_members{{{labels}}} {len(group.members)}")
    offset = page.family(f"{prefix}_offset", "The last offset that a group committed.")
    lag = page.family(f"{prefix}_lag", "Records of a partition that are not consumed.")
    offset_sum = page.family(f"{prefix}_offset_sum", "Sum of a topic's committed offsets.")
    lag_sum = page.family(f"{prefix}_lag_sum", "Records of a topic that are not consumed.")
    for topic, places in list(group.topics.items()):
        known = {index: place for index, place in places.items() if place.lag is not None}
        of_topic = f'{labels},topic="{escaped(topic)}"'
        for index, place in known.items():
            at = f'{{{of_topic},partition="{index}"}}'
            offset.append(f"{prefix}_offset{at} {place.committed}")
            lag.append(f"{prefix}_lag{at} {place.lag}")
        if known:
            position = sum(place.committed for place in known.values())
            offset_sum.append(f"{prefix}_offset_sum{{{of_topic}}} {position}")
            total = sum(place.lag or 0 for place in known.values())
            lag_sum.append(f"{prefix}_lag_sum{{{of_topic}}} {total}")

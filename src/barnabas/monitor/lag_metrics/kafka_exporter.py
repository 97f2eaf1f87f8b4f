"""Metrics in the names of kafka_exporter.

In: the lag of clusters. Out: families of a page. Of a topic that the group consumes, every partition is
shown: one without a commit has the offset and the lag -1. Where several clusters are shown, each sample gets
a label `cluster`, which kafka_exporter does not have. Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import Group
from barnabas.monitor.lag.topics import UNKNOWN, Topic
from barnabas.monitor.lag_metrics.page import Page, escaped

TOPIC_FAMILIES = (
    ("current_offset", "End of a partition."),
    ("oldest_offset", "Start of a partition."),
    ("leader", "Broker that leads a partition."),
    ("replicas", "Replicas of a partition."),
    ("in_sync_replica", "Replicas in sync of a partition."),
    ("leader_is_preferred", "1 if the preferred replica leads the partition."),
    ("under_replicated_partition", "1 if not all replicas are in sync."),
)


def write(page: Page, clusters: Sequence[ClusterLag], now_ms: int) -> Steps[None]:
    for cluster in clusters:
        extra = f'cluster="{escaped(cluster.name)}",' if len(clusters) > 1 else ""
        write_brokers(page, cluster, extra)
        yield
        for topic in list(cluster.topics.values()):
            if topic.is_known and cluster.shows_topic(topic.name):
                write_topic(page, topic, extra)
                yield
        for group in list(cluster.groups.values()):
            write_group(page, cluster, group, extra)
            yield


def write_brokers(page: Page, cluster: ClusterLag, extra: str) -> None:
    count = page.family("kafka_brokers", "Brokers of the cluster.")
    labels = f"{{{extra.rstrip(',')}}}" if extra else ""
    count.append(f"kafka_brokers{labels} {len(cluster.brokers)}")
    info = page.family("kafka_broker_info", "A broker; the value is always 1.")
    for broker in cluster.brokers:
        address = escaped(f"{broker.host}:{broker.port}")
        info.append(f'kafka_broker_info{{{extra}id="{broker.id}",address="{address}"}} 1')


def write_topic(page: Page, topic: Topic, extra: str) -> None:
    labels = f'{extra}topic="{escaped(topic.name)}"'
    count = page.family("kafka_topic_partitions", "Partitions of a topic.")
    count.append(f"kafka_topic_partitions{{{labels}}} {len(topic.partitions)}")
    families = {name: page.family(f"kafka_topic_partition_{name}", text) for name, text in TOPIC_FAMILIES}
    for index, offsets in enumerate(topic.partitions):
        place = f'{{{labels},partition="{index}"}}'
        where = offsets.placement
        values: dict[str, int] = {
            "replicas": len(where.replicas),
            "in_sync_replica": len(where.in_sync),
            "leader_is_preferred": int(bool(where.replicas) and where.leader == where.replicas[0]),
            "under_replicated_partition": int(len(where.in_sync) < len(where.replicas)),
        }
        if offsets.end != UNKNOWN:
            values["current_offset"] = offsets.end
        if offsets.start != UNKNOWN:
            values["oldest_offset"] = offsets.start
        if where.leader != UNKNOWN:
            values["leader"] = where.leader
        for name, value in values.items():
            families[name].append(f"kafka_topic_partition_{name}{place} {value}")


def write_group(page: Page, cluster: ClusterLag, group: Group, extra: str) -> None:
    labels = f'{extra}consumergroup="{escaped(group.group_id)}"'
    members = page.family("kafka_consumergroup_members", "Members of a group.")
    members.append(f"kafka_consumergroup_members{{{labels}}} {len(group.members)}")
    offset = page.family("kafka_consumergroup_current_offset", "The last offset that a group committed.")
    lag = page.family("kafka_consumergroup_lag", "Records of a partition that are not consumed.")
    offset_sum = page.family(
        "kafka_consumergroup_current_offset_sum",
        "Sum of a topic's committed offsets, -1 where there is none.",
    )
    lag_sum = page.family("kafka_consumergroup_lag_sum", "Records of a topic that are not consumed.")
    for topic, places in list(group.topics.items()):
        known = cluster.topics.get(topic)
        if known is None or not known.is_known or not cluster.shows_topic(topic):
            continue
        if not any(place.window for place in places.values()):
            continue
        of_topic = f'{labels},topic="{escaped(topic)}"'
        offsets_total = lag_total = 0
        for index in range(len(known.partitions)):
            place = places.get(index)
            committed = place.committed if place is not None else UNKNOWN
            offsets_total += committed
            at = f'{{{of_topic},partition="{index}"}}'
            offset.append(f"kafka_consumergroup_current_offset{at} {committed}")
            end = known.partitions[index].end
            if end == UNKNOWN:
                continue
            behind = end - committed if committed != UNKNOWN else UNKNOWN
            lag_total += behind if committed != UNKNOWN else 0
            lag.append(f"kafka_consumergroup_lag{at} {behind}")
        offset_sum.append(f"kafka_consumergroup_current_offset_sum{{{of_topic}}} {offsets_total}")
        lag_sum.append(f"kafka_consumergroup_lag_sum{{{of_topic}}} {lag_total}")

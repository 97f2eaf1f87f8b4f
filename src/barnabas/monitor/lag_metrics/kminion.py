"""Metrics in kminion's names; those of its end-to-end probe come from the probe.

In: the lag of clusters, and what only the service knows (`Extras`). Out: families of a page. Where several
clusters are shown, each sample gets a label `cluster`, which kminion does not have. Does not know: HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import Group
from barnabas.monitor.lag.topics import UNKNOWN, Topic
from barnabas.monitor.lag_metrics.page import Page, escaped

STABLE = "Stable"


@dataclass(slots=True)
class Extras:
    """Facts that kminion shows of a cluster beside lag. Sizes are empty where brokers refuse to tell them."""

    is_up: bool = False
    records_read: int = 0
    version: str = "unknown"
    broker_bytes: Mapping[int, int] = field(default_factory=dict)
    topic_bytes: Mapping[str, int] = field(default_factory=dict)


def write(
    page: Page, clusters: Sequence[ClusterLag], extras: Mapping[str, Extras], version: str, prefix: str
) -> Steps[None]:
    for cluster in clusters:
        more = f'cluster="{escaped(cluster.name)}",' if len(clusters) > 1 else ""
        known = extras.get(cluster.name, Extras())
        write_exporter(page, known, version, f"{prefix}_exporter", more)
        write_cluster(page, cluster, known, f"{prefix}_kafka", more)
        yield
        for topic in list(cluster.topics.values()):
            if topic.is_known and cluster.shows_topic(topic.name):
                write_topic(page, topic, known, f"{prefix}_kafka_topic", more)
                yield
        for group in list(cluster.groups.values()):
            write_group(page, group, f"{prefix}_kafka_consumer_group", more)
            yield


def write_exporter(page: Page, extras: Extras, version: str, prefix: str, more: str) -> None:
    up = page.family(f"{prefix}_up", "1 if the last reading of the cluster succeeded.")
    up.append(f'{prefix}_up{{{more}version="{escaped(version)}"}} {int(extras.is_up)}')
    name = f"{prefix}_offset_consumer_records_consumed_total"
    read = page.family(name, "Records read from __consumer_offsets.", "counter")
    labels = f"{{{more.rstrip(',')}}}" if more else ""
    read.append(f"{name}{labels} {extras.records_read}")


def write_cluster(page: Page, cluster: ClusterLag, extras: Extras, prefix: str, more: str) -> None:
    info = page.family(f"{prefix}_cluster_info", "The cluster; the value is always 1.")
    info.append(
        f'{prefix}_cluster_info{{{more}cluster_version="{escaped(extras.version)}",'
        f'broker_count="{len(cluster.brokers)}",controller_id="{cluster.controller_id}",'
        f'cluster_id="{escaped(cluster.cluster_id)}"}} 1'
    )
    brokers = page.family(f"{prefix}_broker_info", "A broker; the value is always 1.")
    sizes = page.family(f"{prefix}_broker_log_dir_size_total_bytes", "Bytes in all log dirs of a broker.")
    for broker in cluster.brokers:
        labels = (
            f'{more}broker_id="{broker.id}",address="{escaped(broker.host)}",port="{broker.port}",'
            f'rack_id="{escaped(broker.rack or "")}"'
        )
        is_controller = str(broker.id == cluster.controller_id).lower()
        brokers.append(f'{prefix}_broker_info{{{labels},is_controller="{is_controller}"}} 1')
        if broker.id in extras.broker_bytes:
            size = extras.broker_bytes[broker.id]
            sizes.append(f"{prefix}_broker_log_dir_size_total_bytes{{{labels}}} {size}")


def write_topic(page: Page, topic: Topic, extras: Extras, prefix: str, more: str) -> None:
    labels = f'{more}topic_name="{escaped(topic.name)}"'
    info = page.family(f"{prefix}_info", "A topic; the value is always 1.")
    replicas = len(topic.partitions[0].placement.replicas) if topic.partitions else -1
    info.append(
        f'{prefix}_info{{{labels},partition_count="{len(topic.partitions)}",'
        f'replication_factor="{replicas}",cleanup_policy="{escaped(topic.cleanup_policy or "N/A")}"}} 1'
    )
    if topic.name in extras.topic_bytes:
        name = f"{prefix}_log_dir_size_total_bytes"
        sizes = page.family(name, "Bytes of all replicas of a topic.")
        sizes.append(f"{name}{{{labels}}} {extras.topic_bytes[topic.name]}")
    if topic.is_internal:
        return  # kminion reads no offsets of internal topics
    for mark, text in (("low", "Start"), ("high", "End")):
        values = [each.start if mark == "low" else each.end for each in topic.partitions]
        name = f"{prefix}_partition_{mark}_water_mark"
        lines = page.family(name, f"{text} of a partition.")
        lines += [
            f'{name}{{{labels},partition_id="{index}"}} {value}'
            for index, value in enumerate(values)
            if value != UNKNOWN
        ]
        if UNKNOWN not in values:  # a sum without some partitions would mislead
            name = f"{prefix}_{mark}_water_mark_sum"
            page.family(name, f"{text} of all partitions of a topic, added up.").append(
                f"{name}{{{labels}}} {sum(values)}"
            )


def write_group(page: Page, group: Group, prefix: str, more: str) -> None:
    labels = f'{more}group_id="{escaped(group.group_id)}"'
    if group.state:
        write_members(page, group, prefix, labels)
    partition = page.family(f"{prefix}_topic_partition_lag", "Records of a partition that are not consumed.")
    lag = page.family(f"{prefix}_topic_lag", "Records of a topic that are not consumed.")
    offsets = page.family(f"{prefix}_topic_offset_sum", "Sum of a topic's committed offsets.")
    for topic, places in list(group.topics.items()):
        committed = {index: place for index, place in places.items() if place.lag is not None}
        if not committed:
            continue
        of_topic = f'{labels},topic_name="{escaped(topic)}"'
        partition += [
            f'{prefix}_topic_partition_lag{{{of_topic},partition_id="{index}"}} {place.lag}'
            for index, place in committed.items()
        ]
        total = sum(place.lag or 0 for place in committed.values())
        lag.append(f"{prefix}_topic_lag{{{of_topic}}} {total}")
        position = sum(place.committed for place in committed.values())
        offsets.append(f"{prefix}_topic_offset_sum{{{of_topic}}} {position}")
    commits = page.family(f"{prefix}_offset_commits_total", "Offsets that a group committed.", "counter")
    commits.append(f"{prefix}_offset_commits_total{{{labels}}} {group.commit_count}")


def write_members(page: Page, group: Group, prefix: str, labels: str) -> None:
    info = page.family(f"{prefix}_info", "A group; the value is 1 if it is stable, else 0.")
    info.append(
        f'{prefix}_info{{{labels},protocol="{escaped(group.protocol)}",'
        f'protocol_type="{escaped(group.protocol_type)}",state="{escaped(group.state)}",'
        f'coordinator_id="{group.coordinator}"}} {int(group.state == STABLE)}'
    )
    members = page.family(f"{prefix}_members", "Members of a group.")
    members.append(f"{prefix}_members{{{labels}}} {len(group.members)}")
    idle = sum(1 for member in group.members if not member.assigned)
    if idle:
        empty = page.family(f"{prefix}_empty_members", "Members of a group without partitions.")
        empty.append(f"{prefix}_empty_members{{{labels}}} {idle}")
    consumers: Counter[str] = Counter()
    assigned: Counter[str] = Counter()
    for member in group.members:
        consumers.update(member.assigned.keys())
        assigned.update(member.assigned)
    for name, text, counts in (
        ("topic_members", "Members of a group with partitions of a topic.", consumers),
        ("topic_assigned_partitions", "Partitions of a topic that members of a group have.", assigned),
    ):
        lines = page.family(f"{prefix}_{name}", text)
        lines += [
            f'{prefix}_{name}{{{labels},topic_name="{escaped(topic)}"}} {count}'
            for topic, count in counts.items()
        ]

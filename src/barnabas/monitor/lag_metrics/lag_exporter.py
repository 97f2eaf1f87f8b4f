"""Metrics in the names of kafka-lag-exporter, with the lag in time.

In: the lag of clusters. Out: families of a page. The lag in time is exact where the timestamp of the first
record that is not consumed was read; elsewhere it is estimated as kafka-lag-exporter does, and NaN while
there are too few points. Partitions that no group consumes are left out, as there. Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import Group
from barnabas.monitor.lag.statuses import time_lag
from barnabas.monitor.lag.topics import UNKNOWN
from barnabas.monitor.lag_metrics.page import Page, escaped, number

PREFIX = "kafka_consumergroup_group"
NOBODY = ("unknown", "unknown", "unknown")  # the labels of a partition without a member
SECONDS = (
    "Age in seconds of the first record that is not consumed: its own timestamp where that was read, "
    "else interpolated."
)


def write(
    page: Page, clusters: Sequence[ClusterLag], poll_ms: Mapping[str, float], now_ms: int
) -> Steps[None]:
    for cluster in clusters:
        name = f'cluster_name="{escaped(cluster.name)}"'
        latest = page.family("kafka_partition_latest_offset", "End of a partition.")
        earliest = page.family("kafka_partition_earliest_offset", "Start of a partition.")
        consumed = {
            (topic, index)
            for group in list(cluster.groups.values())
            for topic, places in group.topics.items()
            for index, place in places.items()
            if place.lag is not None
        }
        yield
        for topic in list(cluster.topics.values()):
            if not topic.is_known or not cluster.shows_topic(topic.name):
                continue
            of_topic = f'{name},topic="{escaped(topic.name)}"'
            for index, offsets in enumerate(topic.partitions):
                if (topic.name, index) not in consumed:
                    continue
                place = f'{{{of_topic},partition="{index}"}}'
                if offsets.end != UNKNOWN:
                    latest.append(f"kafka_partition_latest_offset{place} {offsets.end}")
                if offsets.start != UNKNOWN:
                    earliest.append(f"kafka_partition_earliest_offset{place} {offsets.start}")
            yield
        for group in list(cluster.groups.values()):
            write_group(page, group, name, now_ms)
            yield
        if cluster.name in poll_ms:
            page.family("kafka_consumergroup_poll_time_ms", "Time of the last reading of a cluster.").append(
                f"kafka_consumergroup_poll_time_ms{{{name}}} {number(poll_ms[cluster.name])}"
            )


def write_group(page: Page, group: Group, cluster: str, now_ms: int) -> None:
    labels = f'{cluster},group="{escaped(group.group_id)}"'
    offset = page.family(f"{PREFIX}_offset", "The last offset that a group committed.")
    lag = page.family(f"{PREFIX}_lag", "Records of a partition that are not consumed.")
    seconds = page.family(f"{PREFIX}_lag_seconds", SECONDS)
    topic_sum = page.family(f"{PREFIX}_topic_sum_lag", "Records of a topic that are not consumed.")
    lags: list[int] = []
    ages: list[float] = []
    for topic, places in list(group.topics.items()):
        of_topic: list[int] = []
        for index, place in places.items():
            behind = place.lag
            if behind is None:
                continue
            member = place.owner
            host, member_id, client_id = (
                (member.host, member.member_id, member.client_id) if member is not None else NOBODY
            )
            at = (
                f'{{{labels},topic="{escaped(topic)}",partition="{index}",member_host="{escaped(host)}",'
                f'consumer_id="{escaped(member_id)}",client_id="{escaped(client_id)}"}}'
            )
            age = time_lag(place, now_ms).seconds
            offset.append(f"{PREFIX}_offset{at} {place.committed}")
            lag.append(f"{PREFIX}_lag{at} {behind}")
            seconds.append(f"{PREFIX}_lag_seconds{at} {number(nan if age is None else age)}")
            of_topic.append(behind)
            if age is not None:
                ages.append(age)
        if of_topic:
            topic_sum.append(f'{PREFIX}_topic_sum_lag{{{labels},topic="{escaped(topic)}"}} {sum(of_topic)}')
        lags += of_topic
    if not lags:
        return
    values: tuple[tuple[str, str, float], ...] = (
        ("max_lag", "The largest lag of a partition.", max(lags)),
        ("max_lag_seconds", "The largest lag in time of a partition.", max(ages, default=nan)),
        ("sum_lag", "Records that are not consumed.", sum(lags)),
    )
    for name, text, value in values:
        page.family(f"{PREFIX}_{name}", text).append(f"{PREFIX}_{name}{{{labels}}} {number(value)}")

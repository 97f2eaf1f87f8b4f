"""Metrics in Burrow's names.

In: the lag of clusters. Out: families of a page. As in Burrow, the committed offset and the status of a
partition are shown once its window of commits is full. Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.statuses import is_found, status_of
from barnabas.monitor.lag.topics import UNKNOWN
from barnabas.monitor.lag_metrics.page import Page, escaped

PREFIX = "burrow_kafka"


def write(page: Page, clusters: Sequence[ClusterLag], now_ms: int) -> Steps[None]:
    total = page.family(f"{PREFIX}_consumer_lag_total", "Records that the group has not consumed.")
    status = page.family(
        f"{PREFIX}_consumer_status", "Status of the group: 1 OK, 2 WARN, 3 ERR, by Burrow's rules."
    )
    lag = page.family(f"{PREFIX}_consumer_partition_lag", "Records of a partition that are not consumed.")
    offset = page.family(f"{PREFIX}_consumer_current_offset", "The last offset that the group committed.")
    partition_status = page.family(
        f"{PREFIX}_topic_partition_status",
        "Status of a partition: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND, by Burrow's rules.",
    )
    end = page.family(f"{PREFIX}_topic_partition_offset", "The end of the partition.")
    for cluster in clusters:
        name = escaped(cluster.name)
        for group in list(cluster.groups.values()):
            if not is_found(cluster, group, now_ms):
                continue
            found = yield from status_of(cluster, group, now_ms)
            labels = f'cluster="{name}",consumer_group="{escaped(group.group_id)}"'
            total.append(f"{PREFIX}_consumer_lag_total{{{labels}}} {found.lag}")
            status.append(f"{PREFIX}_consumer_status{{{labels}}} {int(found.status)}")
            for each in found.partitions:
                place = f'{{{labels},topic="{escaped(each.topic)}",partition="{each.partition}"}}'
                lag.append(f"{PREFIX}_consumer_partition_lag{place} {each.lag}")
                if each.complete == 1.0 and each.end is not None:
                    offset.append(f"{PREFIX}_consumer_current_offset{place} {each.end.offset}")
                    partition_status.append(f"{PREFIX}_topic_partition_status{place} {int(each.status)}")
            yield
        for topic in list(cluster.topics.values()):
            labels = f'cluster="{name}",topic="{escaped(topic.name)}"'
            for index, offsets in enumerate(topic.partitions):
                if offsets.end != UNKNOWN:
                    end.append(
                        f'{PREFIX}_topic_partition_offset{{{labels},partition="{index}"}} {offsets.end}'
                    )
            yield

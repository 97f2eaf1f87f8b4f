"""Metrics in our own names: each group with its status, its lag in records and in time, and its forecasts.

In: the lag of clusters. Out: families of a page. A forecast that cannot be made is left out.
Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.group_forecasts import Shared, forecasts_of
from barnabas.monitor.lag.statuses import status_of
from barnabas.monitor.lag_metrics.page import Page, escaped, number

PREFIX = "barnabas_lag"


def write(page: Page, clusters: Sequence[ClusterLag], now_ms: int) -> Steps[None]:
    records = page.family(f"{PREFIX}_group_records", "Records that a group has not consumed.")
    seconds = page.family(f"{PREFIX}_group_seconds", "Age of the oldest record that is not consumed.")
    status = page.family(f"{PREFIX}_group_status", "Status by Burrow's rules: 1 OK, 2 WARN, 3 ERR.")
    caught_up = page.family(
        f"{PREFIX}_group_caught_up_seconds", "Forecast: the group is caught up in so many seconds."
    )
    overtaken = page.family(
        f"{PREFIX}_group_overtaken_seconds",
        "Forecast: retention deletes records that the group did not consume in so many seconds.",
    )
    watched = page.family(f"{PREFIX}_groups", "Groups that are watched.")
    for cluster in clusters:
        of_cluster = f'cluster="{escaped(cluster.name)}"'
        watched.append(f"{PREFIX}_groups{{{of_cluster}}} {len(cluster.groups)}")
        shared = Shared(cluster, now_ms)
        for group in list(cluster.groups.values()):
            labels = f'{{{of_cluster},group="{escaped(group.group_id)}",type="{escaped(group.kind)}"}}'
            found = yield from status_of(cluster, group, now_ms)
            records.append(f"{PREFIX}_group_records{labels} {found.lag}")
            status.append(f"{PREFIX}_group_status{labels} {int(found.status)}")
            if found.seconds is not None:
                seconds.append(f"{PREFIX}_group_seconds{labels} {number(found.seconds)}")
            if not found.lag:  # nothing to forecast, and most groups are here
                caught_up.append(f"{PREFIX}_group_caught_up_seconds{labels} 0")
                continue
            whole = (yield from forecasts_of(cluster, group, now_ms, shared)).whole
            if whole is not None and whole.caught_up_s is not None:
                caught_up.append(f"{PREFIX}_group_caught_up_seconds{labels} {number(whole.caught_up_s)}")
            if whole is not None and whole.overtaken_s is not None:
                overtaken.append(f"{PREFIX}_group_overtaken_seconds{labels} {number(whole.overtaken_s)}")

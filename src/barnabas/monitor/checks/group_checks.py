"""Findings about groups: Burrow's judgement, lag in records and in time, when retention overtakes them; and
about topics to which nobody writes.

In: the lag of a cluster (`monitor/lag`), the time. Out: findings with the label `group` or `topic`, in steps:
a cluster may have thousands of them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.steps import Steps
from barnabas.monitor.alerts.rule import Finding, labels_of
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.forecast import RetentionRisk
from barnabas.monitor.lag.group_forecasts import Shared, forecasts_of
from barnabas.monitor.lag.groups import PROBE_GROUPS, Group
from barnabas.monitor.lag.judgement import Status
from barnabas.monitor.lag.offset_times import moved_at
from barnabas.monitor.lag.statuses import GroupStatus, is_found, status_of

HOUR_S = 3600
MINUTE_MS = 60_000
WORDS = {
    Status.WARN: "its lag grows",
    Status.STOP: "it has stopped committing",
    Status.STALL: "it commits, and does not move",
    Status.REWIND: "it went back",
}


def group_findings(cluster: ClusterLag, now_ms: int) -> Steps[Mapping[str, list[Finding]]]:
    status: list[Finding] = []
    lag: list[Finding] = []
    seconds: list[Finding] = []
    retention: list[Finding] = []
    shared = Shared(cluster, now_ms)
    for group in list(cluster.groups.values()):
        if not is_found(cluster, group, now_ms) or group.group_id.startswith(PROBE_GROUPS):
            continue
        judged = yield from status_of(cluster, group, now_ms)
        labels = labels_of(group=group.group_id)
        status.append(Finding(float(judged.status), labels, status_text(judged), subject=judged))
        lag.append(Finding(float(judged.lag), labels))
        if judged.seconds is not None:
            seconds.append(Finding(judged.seconds, labels))
        if judged.lag:  # retention reaches no group that has read everything
            hours = yield from hours_to_retention(cluster, group, shared)
            if hours is not None:
                retention.append(Finding(hours[0], labels, hours[1]))
        yield
    return {
        "group_status": status,
        "group_lag": lag,
        "group_lag_seconds": seconds,
        "retention_hours": retention,
    }


def idle_topics(cluster: ClusterLag, now_ms: int) -> Steps[list[Finding]]:
    """Minutes since the newest record of each topic, as far back as its ends are known."""
    found: list[Finding] = []
    for topic in list(cluster.topics.values()):
        moved_ms = [at for each in topic.partitions if (at := moved_at(each.offset_times)) is not None]
        if moved_ms and not topic.is_internal:
            minutes = max(0.0, (now_ms - max(moved_ms)) / MINUTE_MS)
            found.append(Finding(minutes, labels_of(topic=topic.name)))
        yield
    return found


def status_text(judged: GroupStatus) -> str:
    bad = [each for each in judged.partitions if each.status > Status.OK]
    if not bad:
        return f"{judged.lag:,} records behind"
    worst = max(bad, key=lambda each: (each.status, each.lag))
    more = f", and {len(bad) - 1} more partitions" if len(bad) > 1 else ""
    words = WORDS.get(worst.status, worst.status.name)
    return f"{words} ({worst.topic}-{worst.partition}, {worst.lag:,} records behind{more})"


def hours_to_retention(cluster: ClusterLag, group: Group, shared: Shared) -> Steps[tuple[float, str] | None]:
    """The smallest number of hours of all partitions; 0 where retention has overtaken the group."""
    found = yield from forecasts_of(cluster, group, shared.now_ms, shared)
    hours: list[tuple[float, str]] = []
    for topic, index, each in found.partitions:
        if each.danger is RetentionRisk.OVERTAKEN:
            hours.append((0.0, f"{topic}-{index}: {each.overtaken_reason}"))
        elif each.danger is RetentionRisk.OVERTAKES and each.overtaken_s is not None:
            hours.append((each.overtaken_s / HOUR_S, f"{topic}-{index}: {each.overtaken_reason}"))
    return min(hours, default=None)

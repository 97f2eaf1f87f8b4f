"""Findings about a cluster: partitions, brokers, quorum, log dirs, disks.

In: `ClusterFacts`. Out: findings by the name of the check, and what could not be seen. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from barnabas.client.core.topology import TopicPartition
from barnabas.monitor.alerts.rule import Finding, Labels, labels_of
from barnabas.monitor.checks.cluster_facts import FENCED, QUORUM, SETTINGS, ClusterFacts, log_dirs_of
from barnabas.monitor.checks.disk_trend import DiskTrends

NAMED_MAX = 5  # objects that a message names
NO_BROKER = -1
QUORUM_LAG_MS = 10_000
UNKNOWN_BYTES = -1


def named(objects: Iterable[object]) -> str:
    """Some of the objects, and how many more there are."""
    found = list(map(str, objects))
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return ", ".join(found[:NAMED_MAX]) + more


def counted(objects: Iterable[object]) -> list[Finding]:
    found = list(objects)
    return [Finding(len(found), (), named(found))]


def offline_partitions(facts: ClusterFacts) -> list[Finding]:
    """Partitions without a leader that clients could ask."""
    return counted(name for name, each in facts.partitions.items() if each.leader not in facts.brokers)


def under_replicated(facts: ClusterFacts) -> list[Finding]:
    behind = {name: each for name, each in facts.partitions.items() if len(each.isr) < len(each.replicas)}
    lacking: dict[int, int] = {}
    for each in behind.values():
        for broker in set(each.replicas) - set(each.isr):
            lacking[broker] = lacking.get(broker, 0) + 1
    brokers = ", ".join(f"broker {broker} lacks {count}" for broker, count in sorted(lacking.items()))
    return [Finding(len(behind), (), f"{named(behind)}; {brokers}" if behind else "")]


def under_min_isr(facts: ClusterFacts) -> list[Finding]:
    def is_under(name: TopicPartition) -> bool:
        each = facts.partitions[name]
        needed = min(facts.min_isr.get(name.topic, 1), len(each.replicas))
        return each.leader in facts.brokers and len(each.isr) < needed

    return counted(name for name in facts.partitions if is_under(name))


def no_controller(facts: ClusterFacts) -> list[Finding]:
    """A broker forwards requests for the quorum to its leader: if there is none, the request fails. The
    metadata of a broker tell nothing, since they name any broker that is alive."""
    if facts.quorum is not None:
        return [Finding(float(facts.quorum.leader_id < 0), (), "the quorum elects no leader")]
    if facts.leaderless:
        return [Finding(1, (), f"no leader of the quorum answers: {facts.leaderless}")]
    return [Finding(float(facts.controller_id == NO_BROKER), (), "no broker knows a controller")]


def brokers_gone(facts: ClusterFacts) -> list[Finding]:
    return counted(
        f"{each.id} ({each.host}:{each.port})"
        for each in facts.brokers.values()
        if each.fenced or each.id in facts.silent
    )


def quorum_lag(facts: ClusterFacts) -> list[Finding]:
    if facts.quorum is None:
        return []
    quorum = facts.quorum
    newest_ms = max((each.last_caught_up_timestamp for each in quorum.voters), default=0)
    return counted(
        f"voter {each.id}"
        for each in quorum.voters
        if each.id != quorum.leader_id and newest_ms - each.last_caught_up_timestamp > QUORUM_LAG_MS
    )


def offline_log_dirs(facts: ClusterFacts) -> list[Finding]:
    found = []
    for broker, dirs in facts.log_dirs.items():
        failed = [each.path for each in dirs if each.error_code]
        found.append(Finding(len(failed), labels_of(broker=broker), named(failed)))
    return found


def disk_free_percent(facts: ClusterFacts) -> list[Finding]:
    return [
        Finding(100 * each.usable_bytes / each.total_bytes, labels_of(broker=broker, dir=each.path))
        for broker, dirs in facts.log_dirs.items()
        for each in dirs
        if not each.error_code and each.total_bytes > 0 and each.usable_bytes != UNKNOWN_BYTES
    ]


def replication_factor(facts: ClusterFacts) -> list[Finding]:
    """The replicas of each topic's partition that has the fewest."""
    found: dict[str, int] = {}
    for name, each in facts.partitions.items():
        found[name.topic] = min(found.get(name.topic, len(each.replicas)), len(each.replicas))
    return [Finding(count, labels_of(topic=topic)) for topic, count in found.items()]


def broker_replicas(facts: ClusterFacts) -> list[Finding]:
    found = dict.fromkeys(facts.brokers, 0)
    for each in facts.partitions.values():
        for broker in each.replicas:
            found[broker] = found.get(broker, 0) + 1
    return [Finding(count, labels_of(broker=broker)) for broker, count in found.items()]


# No default rule asks for these: what is right differs from cluster to cluster.
LAYOUT_CHECKS: Mapping[str, Callable[[ClusterFacts], list[Finding]]] = {
    "replication_factor": replication_factor,
    "broker_replicas": broker_replicas,
}
CHECKS: Mapping[str, Callable[[ClusterFacts], list[Finding]]] = {
    "offline_partitions": offline_partitions,
    "under_replicated": under_replicated,
    "under_min_isr": under_min_isr,
    "no_controller": no_controller,
    "brokers_gone": brokers_gone,
    "quorum_lag": quorum_lag,
    "offline_log_dirs": offline_log_dirs,
    "disk_free_percent": disk_free_percent,
}


DISK_CHECKS = ("offline_log_dirs", "disk_free_percent", "disk_full_hours")
PARTS = {
    FENCED: ("brokers_gone",),
    SETTINGS: ("under_min_isr",),
    QUORUM: ("quorum_lag", "no_controller"),
}


@dataclass(frozen=True, slots=True)
class IncompleteCheck:
    """A check that could not look at everything: alerts with these labels stay as they are. `is_expected`:
    another check finds the reason, a broker that is gone."""

    check: str
    labels: Labels
    reason: str
    is_expected: bool = False


def blind_checks(facts: ClusterFacts) -> Iterator[IncompleteCheck]:
    """List the places that the findings of `CHECKS` and `disk_full_hours` know nothing of."""
    for part, checks in PARTS.items():
        for check in checks:
            is_answered = check == "no_controller" and (facts.leaderless or facts.controller_id == NO_BROKER)
            if part in facts.problems and not is_answered:
                yield IncompleteCheck(check, (), facts.problems[part], is_expected=bool(facts.leaderless))
    for broker, node in facts.brokers.items():
        if broker not in facts.log_dirs:
            is_gone = node.fenced or broker in facts.silent
            reason = "it is fenced" if node.fenced else facts.problems.get(log_dirs_of(broker), "not read")
            for check in DISK_CHECKS:
                yield IncompleteCheck(check, labels_of(broker=broker), reason, is_expected=is_gone)


def seen(facts: ClusterFacts) -> Iterator[tuple[str, list[Finding]]]:
    """The findings of each check that could look."""
    blind = {each.check for each in blind_checks(facts) if not each.labels}
    for name, check in CHECKS.items():
        if name not in blind:
            yield name, check(facts)


def disk_full_hours(facts: ClusterFacts, trends: DiskTrends, now_ms: int) -> list[Finding]:
    """Hours until each volume is full, if it grows as it did. Volumes that do not grow are left out."""
    found = []
    for broker, dirs in facts.log_dirs.items():
        for each in dirs:
            if each.error_code or each.total_bytes <= 0 or each.usable_bytes == UNKNOWN_BYTES:
                continue
            hours = trends.hours_left((broker, each.path), each.total_bytes, each.usable_bytes, now_ms)
            if hours is not None:
                found.append(Finding(hours, labels_of(broker=broker, dir=each.path)))
    return found

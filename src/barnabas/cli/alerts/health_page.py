"""The page of health: problems of clusters and groups, the worst first, and what was not seen.

In: facts of clusters, groups, findings. Out: lines. Does not know: where findings come from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from barnabas.cli.groups.lag_sources import BrokerLag
from barnabas.client.core.cluster import ClusterCore
from barnabas.monitor.alerts.rule import Finding, Rule, Severity, labels_of
from barnabas.monitor.checks.cluster_checks import named
from barnabas.monitor.checks.cluster_facts import ERRORS, ClusterFacts, reason_of
from barnabas.monitor.lag.groups import PROBE_GROUPS

if TYPE_CHECKING:
    from barnabas.monitor.lag.group_lag import GroupLag

ORDER = [Severity.CRITICAL, Severity.WARNING, Severity.INFO]
MARKS = {Severity.CRITICAL: "CRITICAL", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}
LAG_S_MAX = 300.0
GROUPS_S_MAX = 20.0
SHOWN_OF_RULE_MAX = 5

WITHOUT_MEMBERS = Rule(
    "GroupWithoutMembers",
    "groups",
    Severity.WARNING,
    "group {group} has no members and is {value} records behind ({detail})",
    "its consumers: are they started, do they fail at start?",
    "barnabas consumer-groups --describe --group {group} --bootstrap-server {bootstrap}",
    above=0,
)
FAR_BEHIND = Rule(
    "GroupFarBehind",
    "groups",
    Severity.WARNING,
    "group {group} is {value} records behind; the oldest is {detail} old",
    "whether it has as many members as partitions, and how long its work on one record takes",
    "barnabas lag --watch --group {group} --bootstrap-server {bootstrap}",
    above=0,
)


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Severity
    rule: str
    summary: str
    look_at: str
    command: str


async def read_groups(cluster: ClusterCore) -> tuple[list[GroupLag], dict[str, str]]:
    try:
        async with asyncio.timeout(GROUPS_S_MAX):
            return (await BrokerLag(cluster).look(None)).groups, {}
    except TimeoutError:
        return [], {"groups": f"not all were read within {GROUPS_S_MAX:g} s: their coordinators may be away"}
    except ERRORS as error:
        return [], {"groups": reason_of(error)}


def not_seen(facts: ClusterFacts) -> dict[str, str]:
    """The parts of a cluster that could not be read.

    Brokers leave out topics and groups that the caller may not describe, without a word. A caller that may
    not describe the cluster probably lacks these rights too.
    """
    if not any("AUTHORIZATION_FAILED" in reason for reason in facts.problems.values()):
        return dict(facts.problems)
    return {**facts.problems, "topics and groups": "only those that this principal may describe"}


def group_problems(groups: Iterable[GroupLag], words: tuple[tuple[str, str], ...]) -> Iterator[Problem]:
    for group in groups:
        if not group.lag or group.group_id.startswith(PROBE_GROUPS):
            continue
        labels = labels_of(group=group.group_id)
        topics = named(sorted({each.where.topic for each in group.partitions if each.lag}))
        age_s = (group.age_ms or 0) / 1000
        if group.state == "Empty":
            yield problem(WITHOUT_MEMBERS, Finding(group.lag, labels, topics), words)
        elif age_s > LAG_S_MAX:
            yield problem(FAR_BEHIND, Finding(group.lag, labels, f"{age_s / 60:,.0f} min"), words)


def problem(rule: Rule, found: Finding, words: tuple[tuple[str, str], ...]) -> Problem:
    shown = Finding(found.value, found.labels, found.detail, words)
    return Problem(rule.severity, rule.name, rule.summary_of(shown), rule.look_at, rule.command_for(shown))


def head(facts: ClusterFacts, groups: int, name: str) -> Iterator[str]:
    topics = len({name.topic for name in facts.partitions})
    brokers = len([each for each in facts.brokers.values() if not each.fenced])
    yield f"Cluster {facts.cluster_id or '?'} at {name}"
    yield (
        f"{count(brokers, 'broker')}, {count(topics, 'topic')}, {count(len(facts.partitions), 'partition')}, "
        f"{count(groups, 'group')}; "
        + (f"active controller {facts.quorum.leader_id}" if facts.quorum else "active controller unknown")
    )


def body(problems: list[Problem], unread: Mapping[str, str]) -> Iterator[str]:
    yield ""
    if not problems:
        yield "Nothing is wrong in what was seen." if unread else "Nothing is wrong."
    for rule, alike in groupby(problems, key=lambda each: each.rule):
        found = list(alike)
        for each in found[:SHOWN_OF_RULE_MAX]:
            yield f"{MARKS[each.severity]}  {each.summary}"
            yield f"    look at  {each.look_at}"
            yield f"    run      {each.command}"
            yield ""
        if len(found) > SHOWN_OF_RULE_MAX:
            yield f"and {len(found) - SHOWN_OF_RULE_MAX:,} more of {rule}: --json lists all"
            yield ""
    if unread:
        yield "Not seen:" if problems else "\nNot seen:"
        yield from (f"    {name}: {reason}" for name, reason in sorted(unread.items()))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""health: one page on a cluster: what is wrong, why, and what to do.

In: a cluster, or a file of alerts with its clusters, rules, connectors, certificates and metrics. Out:
findings that violate a rule, the worst first, each with what to look at and the command to run. It looks
once, so rules that need time (disks that fill, groups that stall, counters that grow) say what one look can
tell. Status 1 if something critical is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser
from barnabas.cli.groups.lag_sources import BrokerLag
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterCore
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.rule import Finding, Rule, Severity, labels_of
from barnabas.monitor.checks.cluster_checks import CHECKS, named, seen
from barnabas.monitor.checks.cluster_facts import ERRORS, ClusterFacts, read_cluster, reason_of

if TYPE_CHECKING:
    from barnabas.monitor.lag.group_lag import GroupLag

NEEDS_ARGUMENTS = False
EXAMPLES = ("", "--bootstrap-server broker-1:9092", "--file alerts.yaml", "--json")
ORDER = [Severity.CRITICAL, Severity.WARNING, Severity.INFO]
MARKS = {Severity.CRITICAL: "CRITICAL", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}
LAG_S_MAX = 300.0
GROUPS_S_MAX = 20.0

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


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--file", metavar="alerts.yaml", help="look at all that this file of alerts names")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace, out: Output) -> int:
    if options.file is not None:
        from barnabas.cli.alerts.health_of_file import run_file

        return await run_file(options, out)
    bootstrap = str(options.bootstrap_server)
    words = labels_of(bootstrap=bootstrap, cluster=bootstrap)
    async with cluster_from(options) as cluster:
        facts = await read_cluster(Admin(cluster))
        groups, blind = await read_groups(cluster)
    problems = sorted(
        [*cluster_problems(facts, words), *group_problems(groups, words)],
        key=lambda each: (ORDER.index(each.severity), each.rule),
    )
    unread = {**facts.problems, **blind}
    if options.json:
        out.line(json.dumps(as_json(facts, groups, problems, unread), indent=2))
    else:
        for line in page(facts, groups, problems, unread, bootstrap):
            out.line(line)
    return 1 if any(each.severity is Severity.CRITICAL for each in problems) else 0


async def read_groups(cluster: ClusterCore) -> tuple[list[GroupLag], dict[str, str]]:
    try:
        async with asyncio.timeout(GROUPS_S_MAX):
            return (await BrokerLag(cluster).look(None)).groups, {}
    except TimeoutError:
        return [], {"groups": f"not all were read within {GROUPS_S_MAX:g} s: their coordinators may be away"}
    except ERRORS as error:
        return [], {"groups": reason_of(error)}


def cluster_problems(facts: ClusterFacts, words: tuple[tuple[str, str], ...]) -> Iterator[Problem]:
    rules = {rule.check: rule for rule in DEFAULTS if rule.check in CHECKS}
    for name, findings in seen(facts):
        rule = rules[name]
        for found in findings:
            if rule.is_violated(found.value, is_firing=False):
                yield problem(rule, found, words)


def group_problems(groups: Iterable[GroupLag], words: tuple[tuple[str, str], ...]) -> Iterator[Problem]:
    for group in groups:
        if not group.lag:
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


def page(
    facts: ClusterFacts,
    groups: list[GroupLag],
    problems: list[Problem],
    unread: dict[str, str],
    bootstrap: str,
) -> Iterator[str]:
    yield from head(facts, len(groups), bootstrap)
    yield from body(problems, unread)


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
        yield "Nothing is wrong."
    for each in problems:
        yield f"{MARKS[each.severity]}  {each.summary}"
        yield f"    look at  {each.look_at}"
        yield f"    run      {each.command}"
        yield ""
    if unread:
        yield "Not seen:" if problems else "\nNot seen:"
        yield from (f"    {name}: {reason}" for name, reason in sorted(unread.items()))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_json(
    facts: ClusterFacts, groups: list[GroupLag], problems: list[Problem], unread: dict[str, str]
) -> dict[str, Any]:
    return {
        "cluster_id": facts.cluster_id,
        "brokers": sorted(facts.brokers),
        "partitions": len(facts.partitions),
        "groups": len(groups),
        "problems": [asdict(each) for each in problems],
        "not_seen": unread,
    }

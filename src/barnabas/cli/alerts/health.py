"""health: one page on a cluster: what is wrong, why, and what to do.

In: a cluster, or a file of alerts with its clusters, rules, connectors, certificates and metrics. Out:
findings that violate a rule, the worst first, each with what to look at and the command to run. It looks
once, so rules that need time (disks that fill, groups that stall, counters that grow) say what one look can
tell. Status 1 if something critical is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from barnabas.cli.alerts.health_of_file import run_file
from barnabas.cli.alerts.health_page import (
    ORDER,
    Problem,
    body,
    group_problems,
    head,
    not_seen,
    problem,
    read_groups,
)
from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser
from barnabas.client.admin.admin import Admin
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.rule import Finding, Severity, labels_of
from barnabas.monitor.checks.certificates import certificates_of
from barnabas.monitor.checks.cluster_checks import CHECKS, seen
from barnabas.monitor.checks.cluster_facts import ClusterFacts, read_cluster

if TYPE_CHECKING:
    from barnabas.monitor.lag.group_lag import GroupLag

NEEDS_ARGUMENTS = False
EXAMPLES = ("", "--bootstrap-server broker-1:9092", "--file alerts.yaml", "--json")


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--file", metavar="alerts.yaml", help="look at all that this file of alerts names")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(options: argparse.Namespace, out: Output) -> int:
    if options.file is not None:
        return await run_file(options, out)
    bootstrap = str(options.bootstrap_server)
    words = labels_of(bootstrap=bootstrap, cluster=bootstrap)
    async with cluster_from(options) as cluster:
        facts = await read_cluster(Admin(cluster))
        groups, blind = await read_groups(cluster)
    certificates: list[Finding] = []
    if cluster.settings.security.tls is not None:
        addresses = [each.address for each in facts.brokers.values() if not each.fenced]
        certificates, unseen = await certificates_of(addresses)
        blind |= {f"the certificate of {address}": reason for address, reason in unseen.items()}
    problems = sorted(
        [
            *cluster_problems(facts, words),
            *certificate_problems(certificates, words),
            *group_problems(groups, words),
        ],
        key=lambda each: (ORDER.index(each.severity), each.rule),
    )
    unread = {**not_seen(facts), **blind}
    if options.json:
        out.line(json.dumps(as_json(facts, groups, problems, unread), indent=2))
    else:
        for line in page(facts, groups, problems, unread, bootstrap):
            out.line(line)
    return 1 if any(each.severity is Severity.CRITICAL for each in problems) else 0


def cluster_problems(facts: ClusterFacts, words: tuple[tuple[str, str], ...]) -> Iterator[Problem]:
    rules = {rule.check: rule for rule in DEFAULTS if rule.check in CHECKS}
    for name, findings in seen(facts):
        rule = rules[name]
        for found in findings:
            if rule.is_violated(found.value, is_firing=False):
                yield problem(rule, found, words)


def certificate_problems(found: list[Finding], words: tuple[tuple[str, str], ...]) -> Iterator[Problem]:
    (rule,) = (each for each in DEFAULTS if each.check == "certificate_days")
    for each in found:
        if rule.is_violated(each.value, is_firing=False):
            yield problem(rule, each, words)


def page(
    facts: ClusterFacts,
    groups: list[GroupLag],
    problems: list[Problem],
    unread: dict[str, str],
    bootstrap: str,
) -> Iterator[str]:
    yield from head(facts, len(groups), bootstrap)
    yield from body(problems, unread)


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

"""health --file: one look at all that a file of alerts names, judged by its rules.

In: the file. Out: a page or JSON over all its clusters, connectors, audits, certificates and metrics, and a
status. Does not know: how long a rule waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from barnabas.cli.alerts.health_page import ORDER, Problem, body, group_problems, head, problem, read_groups
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.monitor.alerts.defaults import UNEXPECTED_SINCE_START
from barnabas.monitor.alerts.rule import Severity


async def run_file(options: argparse.Namespace, out: Output) -> int:
    try:
        from barnabas.monitor.alert_service.burrow_alerts import read_any
        from barnabas.monitor.alert_service.measuring import BLIND, Measuring, findings_for, place_text
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[alerts]'") from None
    from barnabas.settings.errors import SettingsError

    try:
        file = read_any(Path(options.file))
    except SettingsError as error:
        raise ToolError(str(error)) from None
    measuring = Measuring(file, with_groups=False)
    try:
        look, groups = await asyncio.gather(
            measuring.measure(time.time_ns() // 1_000_000),
            asyncio.gather(*(read_groups(each.client) for each in measuring.clusters)),
        )
    finally:
        await measuring.stop()

    def problems() -> Iterator[Problem]:
        rules = [
            UNEXPECTED_SINCE_START if rule.name == UNEXPECTED_SINCE_START.name else rule
            for rule in file.rules
        ]
        for rule in rules:
            for found in findings_for(look, rule) if rule.check != BLIND else ():
                if rule.is_violated(found.value, is_firing=False):
                    yield problem(rule, found, found.words)
        for cluster, (known, _) in zip(measuring.clusters, groups, strict=True):
            allowed = [each for each in known if file.admits(each.group_id)]
            yield from group_problems(allowed, (*cluster.words, *cluster.labels))

    unread = {place_text(place): reason for place, reason in {**look.unknown, **look.expected}.items()}
    for cluster, (_, blind) in zip(measuring.clusters, groups, strict=True):
        unread |= {f"{part} (cluster={cluster.settings.name})": reason for part, reason in blind.items()}
    found = sorted(problems(), key=lambda each: (ORDER.index(each.severity), each.rule))
    if options.json:
        clusters = {name: facts.cluster_id for name, facts in look.facts.items()}
        shown = {"clusters": clusters, "problems": [asdict(each) for each in found], "not_seen": unread}
        out.line(json.dumps(shown, indent=2))
    else:
        for cluster, (known, _) in zip(measuring.clusters, groups, strict=True):
            facts = look.facts.get(cluster.settings.name)
            if facts is not None:
                for line in head(facts, len(known), cluster.settings.name):
                    out.line(line)
        for line in body(found, unread):
            out.line(line)
    return 1 if any(each.severity is Severity.CRITICAL for each in found) else 0

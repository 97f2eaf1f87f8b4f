"""audit report: reads the audit topic once, and prints a table, or JSON. Status 1 if there are alarms."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.report import Report, Rules, alarm_text, make_report
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.report.auditor import system_ms
from barnabas.audit.report.rules_file import duration_ms, read_rules
from barnabas.audit.report.text import lines
from barnabas.cli.frame.connecting import cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError


async def run(options: argparse.Namespace, out: Output) -> int:
    if (options.first is None) != (options.second is None):
        raise UsageError("--from and --to name two tiers to compare: give both or none")
    between = None if options.first is None else (options.first, options.second)
    rules = rules_of(options)
    ledger = await read_ledger(options)
    report = make_report(ledger, rules, system_ms(), topic=options.topic, between=between)
    show(report, options, out)
    return 1 if report.alarms else 0


def rules_of(options: argparse.Namespace) -> Rules:
    try:
        rules = read_rules(options.rules) if options.rules else Rules()
        if options.patience is not None:
            rules = replace(rules, default_patience_ms=duration_ms(options.patience))
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[audit]'") from None
    except (ValueError, OSError) as error:
        raise ToolError(str(error)) from None
    return rules


async def read_ledger(options: argparse.Namespace) -> Ledger:
    if options.spark is not None:
        from barnabas.audit.lake.sums import sum_on_spark

        properties = load_properties(options.command_config)
        return sum_on_spark(options.spark, options.bootstrap_server, options.audit_topic, properties)
    ledger = Ledger()
    async with cluster_from(options) as cluster:
        reader = AuditTopicReader(cluster, options.audit_topic)
        try:
            await reader.catch_up(ledger.apply)
            ledger.since_ms = reader.since_ms
        finally:
            await reader.close()
    return ledger


def show(report: Report, options: argparse.Namespace, out: Output) -> None:
    if options.alarms:
        report = replace(report, rows=tuple(report.alarms))
    if options.json:
        out.line(json.dumps(report.to_json(), indent=2))
        return
    for line in lines(report):
        out.line(line)
    for row in report.alarms:
        out.line(f"alarm: {alarm_text(row)}")

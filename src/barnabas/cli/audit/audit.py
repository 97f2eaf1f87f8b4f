"""audit: says whether every record that was sent arrived everywhere, once, and in time.

report   compare the counts of tiers, and print a table
serve    the same every ten minutes, over HTTP: a page, JSON, metrics, alarms
count    count the records of a cluster from outside, for clusters that do not count themselves (Apache Kafka)
verify   compare two topics record by record, on Spark
"""

from __future__ import annotations

import argparse
from importlib import import_module

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.services.starting import StartedService, add_start_arguments, run_start

EXAMPLES = (
    "report --bootstrap-server localhost:9092",
    "report --topic orders --from producer --to consumer/billing",
    "serve --bootstrap-server localhost:9092 --port 8086",
    "count --bootstrap-server kafka:9092 --audit-server localhost:9092 --tier mirror/dc2",
    "verify localhost:9092/orders kafka:9092/orders --headers",
)
AUDIT = StartedService("audit", "audit", "audit.properties", 8086, "bootstrap.servers", "audit")
COMMANDS = {"report": "reporting", "count": "counting", "verify": "verifying"}


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    report = commands.add_parser("report", help="compare the counts of tiers, and print a table")
    add_bootstrap(report)
    add_command_config(report)
    add_topic(report)
    report.add_argument("--topic", metavar="NAME", help="only this topic")
    report.add_argument("--from", dest="first", metavar="TIER", help="compare two tiers: this one ...")
    report.add_argument("--to", dest="second", metavar="TIER", help="... with this one")
    report.add_argument("--rules", metavar="FILE", help="YAML file with the rules of the audit")
    report.add_argument("--patience", metavar="10m", help="how long records may take to reach the next tier")
    report.add_argument("--json", action="store_true", help="the report as JSON")
    report.add_argument("--alarms", action="store_true", help="only rows with alarms")
    report.add_argument("--spark", metavar="MASTER", help="sum up the counts on Spark: local[2], spark://...")
    serve = commands.add_parser("serve", help="make a report every ten minutes, and serve it over HTTP")
    add_start_arguments(serve, AUDIT)
    count = commands.add_parser("count", help="count the records of a cluster from outside")
    add_bootstrap(count)
    add_command_config(count)
    add_topic(count)
    count.add_argument(
        "--audit-server", metavar="HOST:PORT,...", help="brokers of the audit topic, if others"
    )
    count.add_argument("--tier", default="cluster", metavar="TIER", help="cluster, or mirror/NAME (cluster)")
    count.add_argument("--topic", action="append", metavar="NAME", help="only this topic; may be repeated")
    count.add_argument("--once", action="store_true", help="count what is there, and end")
    count.add_argument(
        "--read",
        choices=("headers", "records", "contents"),
        default="headers",
        help="contents: sum up what records hold too (headers)",
    )
    verify = commands.add_parser("verify", help="compare two topics record by record, on Spark")
    verify.add_argument("source", metavar="HOST:PORT/TOPIC", help="the topic that was copied")
    verify.add_argument("target", metavar="HOST:PORT/TOPIC", help="the copy")
    verify.add_argument("--command-config", metavar="FILE", help="properties of both clients")
    verify.add_argument(
        "--target-config", metavar="FILE", help="properties of the target's client, if others"
    )
    verify.add_argument("--headers", action="store_true", help="compare headers too")
    verify.add_argument("--timestamps", action="store_true", help="compare timestamps too")
    verify.add_argument(
        "--no-order", action="store_true", help="do not compare the order of each key's records"
    )
    verify.add_argument(
        "--latest",
        action="store_true",
        help="compare only the last record of each key, tombstones as none: for compacted topics",
    )
    verify.add_argument("--limit", type=int, default=20, metavar="N", help="differences to print (20)")
    verify.add_argument("--ranges", type=int, default=256, metavar="N", help="ranges of keys (256)")
    verify.add_argument("--spark", default="local[*]", metavar="MASTER", help="(local[*])")
    verify.add_argument("--json", action="store_true", help="the result as JSON")


def add_topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audit-topic", default="_barnabas_audit", metavar="NAME", help="the topic with the counts"
    )


def run(options: argparse.Namespace, out: Output) -> object:
    """The status, or the coroutine of a command that waits for brokers."""
    if options.command is None:
        raise UsageError("a command is missing: report, serve, count or verify")
    if options.command == "serve":
        return run_start(options, out, AUDIT)
    try:
        module = import_module(f"barnabas.cli.audit.{COMMANDS[options.command]}")
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[audit]'") from None
    return module.run(options, out)

"""dashboards: write dashboards for Grafana and rules for Prometheus to a folder.

They are made from one description (`barnabas.monitor.dashboards`) in the dialect of names that the brokers'
metrics endpoint speaks (`barnabas.metrics.dialect`).
"""

import argparse
from pathlib import Path

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.metrics.dialects import DEFAULT, DIALECTS
from barnabas.monitor.dashboards.export import DASHBOARDS, export

EXAMPLES = (
    "export --out monitoring",
    "export --dialect strimzi --out monitoring",
    "list",
)


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    writing = commands.add_parser("export", help="write all dashboards and rules")
    writing.add_argument(
        "--dialect", choices=sorted(DIALECTS), default=DEFAULT, help=f"names of metrics (default: {DEFAULT})"
    )
    writing.add_argument("--out", metavar="DIR", default="dashboards", help="folder (default: dashboards)")
    commands.add_parser("list", help="print the names of all dashboards")


def run(options: argparse.Namespace, out: Output) -> None:
    if options.command == "list":
        for each in DASHBOARDS:
            out.line(f"{each.name:12} {each.help}")
        return
    try:
        for path in export(options.dialect, Path(options.out)):
            out.line(str(path))
    except OSError as error:
        raise ToolError(f"--out {options.out}: {error.strerror or error}") from None

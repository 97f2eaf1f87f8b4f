"""pipeline: all commands on a pipeline's file, from `init` to `destroy`.

In: a command and the file (default: `pipeline.yaml`). Out: the output of the command. If the file has
problems, the tool prints all of them, with their lines, before it starts anything.
"""

import argparse
from collections.abc import Callable
from importlib import import_module

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError

EXAMPLES = (
    "init",
    "validate pipeline.yaml",
    "plan",
    "run --once",
    "run --metrics-port 9095",
    "status --watch",
    "query revenue --filter shop=berlin --order -revenue --limit 10",
    "backfill orders --from 2026-01-01 --to 2026-01-02",
    "report --output report.html",
)
DEFAULT_FILE = "pipeline.yaml"
WATCH_S = 1.0
SCHEMA_HELP = "print the JSON Schema of the file, for editors"

COMMANDS = {
    "init": "pipeline_show",
    "validate": "pipeline_show",
    "schema": "pipeline_show",
    "plan": "pipeline_show",
    "run": "pipeline_do",
    "status": "pipeline_show",
    "backfill": "pipeline_do",
    "replay": "pipeline_do",
    "release": "pipeline_do",
    "query": "pipeline_query",
    "lineage": "pipeline_show",
    "report": "pipeline_show",
    "destroy": "pipeline_do",
    "key": "pipeline_fields",
    "decrypt": "pipeline_fields",
}

Command = Callable[[argparse.Namespace, Output], int | None]


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=summary, description=summary)
        found.add_argument("-f", "--file", default=DEFAULT_FILE, metavar="FILE", help=f"({DEFAULT_FILE})")
        return found

    def with_file(name: str, summary: str) -> argparse.ArgumentParser:
        """A command that takes the file as its only argument."""
        found = command(name, summary)
        found.add_argument("place", nargs="?", metavar="FILE", help="same as --file")
        return found

    init = with_file("init", "write a first file")
    init.add_argument("--force", action="store_true", help="replace an existing file")
    with_file("validate", "list all problems of the file, with lines and hints")
    commands.add_parser("schema", help=SCHEMA_HELP, description=SCHEMA_HELP)
    with_file("plan", "show what a run would create, change and remove")
    run = with_file("run", "run the pipeline: serving, batch and streaming, each restarted when it dies")
    run.add_argument("--once", action="store_true", help="do everything that is due in this process, and end")
    run.add_argument("--metrics-port", type=int, metavar="N", help="Prometheus metrics on this port")
    run.add_argument("--seconds", type=float, metavar="N", help="stop after N seconds")
    run.add_argument(
        "--standby",
        action="store_true",
        help="wait while another host runs it, and take over if that one dies",
    )
    status = with_file("status", "show the state and totals of each source, view and process")
    status.add_argument(
        "--watch", nargs="?", type=float, const=WATCH_S, metavar="SECONDS", help="refresh continuously"
    )
    status.add_argument("--json", action="store_true", help="a line of JSON for each of them")
    add_changing(command)
    query = command("query", "query a view, or all of them in SQL")
    query.add_argument("view", nargs="?", help="the view to show; without it, list them")
    query.add_argument("--sql", metavar="SELECT", help="a SELECT over the views instead")
    query.add_argument("--filter", action="append", default=[], metavar="COLUMN=VALUE", help="also >, <, !=")
    query.add_argument("--order", metavar="COLUMNS", help="as in -revenue,shop")
    parser.signed.add("--order")
    query.add_argument("--limit", type=int, metavar="N")
    query.add_argument("--as-of", metavar="TIME", help="a time, or the version of a horizon")
    query.add_argument("--json", action="store_true", help="the answer as JSON, with its freshness")
    lineage = with_file("lineage", "print the origin of each table and column, and write a picture")
    lineage.add_argument("--output", metavar="FILE", help="the picture, .html or .svg (lineage.html)")
    lineage.add_argument("--column", metavar="TABLE.COLUMN", help="only this, as in view.revenue.orders")
    lineage.add_argument("--events", action="store_true", help="OpenLineage events instead, as JSON lines")
    report = with_file("report", "write a page about everything that ran")
    report.add_argument("--output", default="report.html", metavar="FILE", help="(report.html)")
    destroy = with_file("destroy", "delete the lake with everything in it")
    destroy.add_argument("--yes", action="store_true", help="without asking")
    command("key", "make a key for encrypted and tokenised fields")
    decrypt = command("decrypt", "decrypt fields of a trusted table, with the key that its file names")
    decrypt.add_argument("table", help="the trusted table, whose key is used")
    decrypt.add_argument("text", nargs="*", help="texts with encrypted fields (default: standard input)")


def add_changing(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Commands that rewrite a part of the lake, and refresh what depends on it."""
    backfill = command("backfill", "read a time range of a source again")
    backfill.add_argument("source", help="the source to read again")
    backfill.add_argument(
        "--from", dest="start", required=True, metavar="TIME", help="as in 2026-01-31T12:00"
    )
    backfill.add_argument(
        "--to", dest="end", required=True, metavar="TIME", help="end of the range, exclusive"
    )
    replay = command("replay", "write staging, trusted and what depends on them again from raw")
    replay.add_argument("source", help="the source whose raw rows are written again")
    replay.add_argument("--from-batch", type=int, metavar="N", help="from this batch on")
    replay.add_argument("--to-batch", type=int, metavar="N", help="up to this batch")
    replay.add_argument(
        "--rebuild", action="store_true", help="recreate the tables, for columns with new types"
    )
    replay.add_argument("--yes", action="store_true", help="remove rows that raw lacks without asking")
    release = command("release", "release quarantined rows that pass the rules now")
    release.add_argument("table", help="the table that refused them")
    release.add_argument("--rule", action="append", metavar="NAME", help="only rows that this rule refused")


def run(options: argparse.Namespace, out: Output) -> int | None:
    if options.command is None:
        raise UsageError(f"too few arguments: one of {', '.join(COMMANDS)} is needed")
    if getattr(options, "place", None):
        options.file = options.place
    try:
        module = import_module(f"barnabas.cli.pipelines.{COMMANDS[options.command]}")
    except ModuleNotFoundError as error:
        raise ToolError(f'{error.name} is missing: pip install "barnabas[pipeline]"') from error
    found: Command = getattr(module, options.command)
    return found(options, out)

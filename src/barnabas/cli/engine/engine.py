"""engine: the applications on Spark of one place, and their running queries.

In: a place (the folder or URL beside the data, or a pipeline's file), a command. Out: tables, JSON, logs. It
reads the catalogue, so it works from any host. Only `stop`, `reset` and `forget` change something.
"""

import argparse
from collections.abc import Callable
from importlib import import_module

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError

EXAMPLES = (
    "list --place /data/lake/_barnabas",
    "list -f pipeline.yaml --json",
    "describe shop -f pipeline.yaml",
    "logs shop streaming -f pipeline.yaml --lines 50",
    "stop shop -f pipeline.yaml",
    "reset sums totals --place s3a://bucket/lake/_barnabas",
    "metrics -f pipeline.yaml --port 9096",
    "package --output barnabas.zip",
)
DEFAULT_FILE = "pipeline.yaml"
LINES = 100
WATCH_S = 2.0
COMMANDS = {
    "list": "engine_show",
    "describe": "engine_show",
    "logs": "engine_show",
    "metrics": "engine_show",
    "stop": "engine_do",
    "reset": "engine_do",
    "forget": "engine_do",
    "package": "engine_do",
}

Command = Callable[[argparse.Namespace, Output], int | None]


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=summary, description=summary)
        found.add_argument("--place", metavar="FOLDER", help="folder or URL of the engine's files")
        found.add_argument(
            "-f", "--file", metavar="FILE", help=f"a pipeline's file: its lake ({DEFAULT_FILE})"
        )
        return found

    def of_application(name: str, summary: str) -> argparse.ArgumentParser:
        found = command(name, summary)
        found.add_argument("application", help="name of the application")
        return found

    listing = command("list", "list applications and their queries")
    listing.add_argument("--json", action="store_true", help="a line of JSON for each query")
    listing.add_argument("--watch", nargs="?", type=float, const=WATCH_S, metavar="SECONDS", help="refresh")
    describe = of_application("describe", "show everything about one application")
    describe.add_argument("--json", action="store_true", help="as JSON")
    logs = of_application("logs", "print the logs of an application's programs on this host")
    logs.add_argument("program", nargs="?", help="only this program")
    logs.add_argument("--lines", type=int, default=LINES, metavar="N", help=f"last lines of each ({LINES})")
    stop = of_application("stop", "stop an application, on whatever host it runs")
    stop.add_argument("--wait", type=float, default=60.0, metavar="SECONDS", help="wait for its end (60)")
    reset = of_application("reset", "delete the state of a query, so that it starts anew")
    reset.add_argument("query", help="name of the query")
    reset.add_argument("--yes", action="store_true", help="without asking")
    of_application("forget", "remove an application that does not run any more from the list")
    metrics = command("metrics", "print metrics for Prometheus, or serve them")
    metrics.add_argument("--port", type=int, metavar="N", help="serve /metrics on this port")
    metrics.add_argument("--host", default="127.0.0.1", metavar="HOST", help="(127.0.0.1)")
    package = command("package", "make the archive that executors get")
    package.add_argument("--output", metavar="FILE", help="copy it here")


def run(options: argparse.Namespace, out: Output) -> int | None:
    if options.command is None:
        raise UsageError(f"too few arguments: one of {', '.join(COMMANDS)} is needed")
    try:
        module = import_module(f"barnabas.cli.engine.{COMMANDS[options.command]}")
    except ModuleNotFoundError as error:
        raise ToolError(f'{error.name} is missing: pip install "barnabas[pipeline]"') from error
    name = {"list": "list_all"}.get(options.command, options.command)
    found: Command = getattr(module, name)
    return found(options, out)

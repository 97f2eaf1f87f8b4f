"""connect: commands on Connect.

standalone    run a single worker in the foreground
distributed   run a worker of a cluster in the foreground
status        connectors and tasks of a cluster, with throughput, lag, snapshots and last errors
tail          the same, line by line as it changes
explain       where the rows of a connector's tasks are, and the plans of its Spark jobs
new           write the template of a connector with a test that passes
"""

import argparse
from importlib import import_module

from barnabas.cli.connect.starting import add_worker_arguments, run_worker
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError

EXAMPLES = (
    "standalone worker.properties connector.properties",
    "distributed worker.properties",
    "status",
    "status orders --url http://worker-1:8083 --json",
    "tail orders",
    "explain orders",
    "new my_source --kind source",
)
DEFAULT_URL = "http://localhost:8083"
WATCH_S = 2.0
WORKERS = ("standalone", "distributed")
KINDS = ("source", "sink", "spark-source", "spark-sink")


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    single = commands.add_parser("standalone", help="run a single worker in the foreground")
    add_worker_arguments(single, has_files=True)
    shared = commands.add_parser("distributed", help="run a worker of a cluster in the foreground")
    add_worker_arguments(shared, has_files=False)

    def of_cluster(name: str, summary: str, *, needs_connector: bool = False) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=summary, description=summary)
        found.add_argument("connector", nargs=None if needs_connector else "?", help="name of the connector")
        found.add_argument(
            "--url", default=DEFAULT_URL, help=f"REST address of a worker ({DEFAULT_URL}); others are found"
        )
        found.add_argument("--user", metavar="NAME:PASSWORD", help="basic authentication")
        return found

    status = of_cluster("status", "show connectors and tasks, throughput, lag and last errors")
    status.add_argument("--json", action="store_true", help="a line of JSON for each task")
    tail = of_cluster("tail", "print a line whenever something of a task changes")
    tail.add_argument("--interval", type=float, default=WATCH_S, metavar="SECONDS", help="between two looks")
    tail.add_argument("--count", type=int, metavar="N", help="look so many times, then end")
    explain = of_cluster("explain", "show where rows are, and plans of Spark jobs", needs_connector=True)
    explain.add_argument("--json", action="store_true", help="a line of JSON for each task")
    new = commands.add_parser("new", help="write the template of a connector with a test")
    new.add_argument("name", help="name of the module, as in Python")
    new.add_argument("--kind", choices=KINDS, default="source", help="what it is (source)")
    new.add_argument("--folder", default=".", help="where it is written (this folder)")


def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError("a command is missing: standalone, distributed, status, tail, explain or new")
    if options.command in WORKERS:
        return run_worker(options, out, is_distributed=options.command == "distributed")
    module = import_module(f"barnabas.cli.connect.{'templates' if options.command == 'new' else 'showing'}")
    found: int = getattr(module, options.command)(options, out)
    return found

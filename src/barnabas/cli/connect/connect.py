"""connect: commands on Connect.

standalone    run a single worker in the foreground
distributed   run a worker of a cluster in the foreground
"""

import argparse

from barnabas.cli.connect.starting import add_worker_arguments, run_worker
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError

EXAMPLES = ("standalone worker.properties connector.properties", "distributed worker.properties")


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    single = commands.add_parser("standalone", help="run a single worker in the foreground")
    add_worker_arguments(single, has_files=True)
    shared = commands.add_parser("distributed", help="run a worker of a cluster in the foreground")
    add_worker_arguments(shared, has_files=False)


def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError("a command is missing: standalone or distributed")
    return run_worker(options, out, is_distributed=options.command == "distributed")

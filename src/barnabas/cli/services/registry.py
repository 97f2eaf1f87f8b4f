"""registry: commands on the schema registry.

start   run it in the foreground
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.services.passwords import HASH_PASSWORD, add_hash_password, run_hash_password
from barnabas.cli.services.starting import REGISTRY, add_start_arguments, run_start

EXAMPLES = (
    "start --bootstrap-server localhost:9092 --port 8081",
    "start schema-registry.properties --override kafkastore.topic=_schemas",
)


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    start = commands.add_parser("start", help=f"run the {REGISTRY.title} in the foreground")
    add_start_arguments(start, REGISTRY)
    add_hash_password(commands)


def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError("a command is missing: start or hash-password")
    if options.command == HASH_PASSWORD:
        return run_hash_password(out)
    return run_start(options, out, REGISTRY)

"""rest: commands on the REST proxy.

start   run it in the foreground
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.services.passwords import HASH_PASSWORD, add_hash_password, run_hash_password
from barnabas.cli.services.starting import REST, add_start_arguments, run_start

EXAMPLES = (
    "start --bootstrap-server localhost:9092 --registry-url http://localhost:8081",
    "start kafka-rest.properties --override api.v2.enable=false",
)


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    start = commands.add_parser("start", help=f"run the {REST.title} in the foreground")
    add_start_arguments(start, REST)
    add_hash_password(commands)


def run(options: argparse.Namespace, out: Output) -> int:
    if options.command is None:
        raise UsageError("a command is missing: start or hash-password")
    if options.command == HASH_PASSWORD:
        return run_hash_password(out)
    return run_start(options, out, REST)

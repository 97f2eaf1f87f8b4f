"""ksql: the SQL shell under the name of ksqlDB's script."""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser
from barnabas.cli.sql.shell_options import add_shell_arguments, run_shell_with

EXAMPLES = ("http://localhost:8088", "--execute 'SHOW STREAMS;'", "--file queries.sql")
NEEDS_ARGUMENTS = False


def add_arguments(parser: ToolParser) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", help="the server (default: http://localhost:8088)")
    add_shell_arguments(parser)


def run(options: argparse.Namespace, out: Output) -> int:
    return run_shell_with(options, options.url)

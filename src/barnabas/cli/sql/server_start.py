"""ksql-server-start: `sql server` under the name of ksqlDB's script."""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser
from barnabas.cli.services.starting import SQL, add_start_arguments, run_start

EXAMPLES = ("ksql-server.properties", "ksql-server.properties --queries-file queries.sql")


def add_arguments(parser: ToolParser) -> None:
    add_start_arguments(parser, SQL)
    parser.add_argument("--queries-file", metavar="FILE", help="run the statements of a file, and no others")


def run(options: argparse.Namespace, out: Output) -> int:
    if options.queries_file is not None:
        options.override = [f"ksql.queries.file={options.queries_file}", *options.override]
    return run_start(options, out, SQL)

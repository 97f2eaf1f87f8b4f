"""sql: statements over topics.

sql [URL]          a shell on a server
sql server         run a server in the foreground
sql run FILE       run a server with the statements of a file, and no others
"""

from __future__ import annotations

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.services.starting import SQL, add_start_options, run_start
from barnabas.cli.sql.shell_options import add_shell_arguments, run_shell_with

EXAMPLES = (
    "http://localhost:8088",
    "--execute 'SHOW STREAMS;'",
    "server --bootstrap-server localhost:9092 --port 8088",
    "server ksql-server.properties --override ksql.service.id=orders_",
    "run queries.sql --bootstrap-server localhost:9092",
)
NEEDS_ARGUMENTS = False


def add_arguments(parser: ToolParser) -> None:
    parser.add_argument(
        "place", nargs="?", metavar="URL|server|run", help="a server's URL for the shell, or what to run"
    )
    parser.add_argument("given", nargs="?", metavar="FILE", help=f"{SQL.file}, or a file with statements")
    add_shell_arguments(parser.add_argument_group("shell"))
    add_start_options(parser.add_argument_group("server and run"), SQL)


def run(options: argparse.Namespace, out: Output) -> int:
    match options.place:
        case "server":
            options.properties = options.given
            return run_start(options, out, SQL)
        case "run":
            if options.given is None:
                raise UsageError("a file with statements is missing: sql run FILE")
            options.properties = None
            options.override = [f"ksql.queries.file={options.given}", *options.override]
            return run_start(options, out, SQL)
    if options.given is not None:
        raise UsageError(f"{options.place!r} is none of server, run and a URL with nothing behind it")
    return run_shell_with(options, options.place)

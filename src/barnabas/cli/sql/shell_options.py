"""Options of the SQL shell, with ksqlDB's names."""

from __future__ import annotations

import argparse
import os

from barnabas.cli.frame.parsing import ToolError, UsageError, key_values

URL_VARIABLE = "KSQL_URL"
EXTRA = "sql"
Arguments = argparse.ArgumentParser | argparse._ArgumentGroup


def above_zero(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def add_shell_arguments(parser: Arguments) -> None:
    parser.add_argument("--execute", "-e", action="append", default=[], metavar="SQL", help="run statements")
    parser.add_argument("--file", "-f", metavar="FILE", help="run the statements of a file")
    parser.add_argument(
        "--define", "-d", action="append", default=[], metavar="NAME=VALUE", help="a variable of the session"
    )
    parser.add_argument("--user", "-u", default="", metavar="NAME[:PASSWORD]", help="basic authentication")
    parser.add_argument("--password", "-p", default="", metavar="PASSWORD", help=argparse.SUPPRESS)
    parser.add_argument("--output", default="TABULAR", type=str.upper, choices=("TABULAR", "JSON"))
    parser.add_argument(
        "--query-row-limit", type=above_zero, metavar="N", help="end a query after so many rows"
    )
    parser.add_argument(
        "--query-timeout", type=above_zero, metavar="MS", help="end a query after so many milliseconds"
    )
    parser.add_argument(
        "--ca-location", metavar="FILE", help="certificates that servers with https must have"
    )


def run_shell_with(options: argparse.Namespace, url: str | None) -> int:
    try:
        from barnabas.sql.shell.main import DEFAULT_URL, ShellOptions, run_shell
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[{EXTRA}]'") from None
    user = options.user
    if user and ":" not in user:
        user = f"{user}:{options.password}"
    for each in options.define:
        if "=" not in each:
            raise UsageError(f"--define {each}: give NAME=VALUE")
    defined = [(name, value.strip("'")) for name, value in key_values(options.define).items()]
    return run_shell(
        ShellOptions(
            url or os.environ.get(URL_VARIABLE) or DEFAULT_URL,
            user,
            options.execute,
            options.file,
            defined,
            options.output,
            options.ca_location,
            options.query_row_limit,
            options.query_timeout,
        )
    )

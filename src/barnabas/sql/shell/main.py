"""Runs the shell: at a prompt, or with the statements of an option, a file or standard input.

In: a URL, options. Out: the exit status: 0, or 1 when a statement failed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.shell.display import Display
from barnabas.sql.shell.server_client import ServerClient
from barnabas.sql.shell.shell import Failed, Leave, Shell

DEFAULT_URL = "http://localhost:8088"


@dataclass(frozen=True, slots=True)
class ShellOptions:
    url: str = DEFAULT_URL
    user: str = ""
    execute: Sequence[str] = ()
    file: str | None = None
    define: Sequence[tuple[str, str]] = ()
    output: str = "TABULAR"
    ca_location: str | None = None
    query_rows_max: int | None = None
    query_ms_max: int | None = None


def run_shell(options: ShellOptions) -> int:
    verify: bool | str = options.ca_location or True

    def make_client(url: str) -> ServerClient:
        return ServerClient(url, options.user, verify=verify)

    display = Display(sys.stdout, is_terminal=sys.stdout.isatty())
    display.output = options.output
    shell = Shell(make_client(options.url), display, make_client)
    shell.session.variables.update(options.define)
    shell.session.query_rows_max = options.query_rows_max
    if options.query_ms_max is not None:
        shell.session.query_seconds_max = options.query_ms_max / 1000
    try:
        if options.file is not None or options.execute:
            return run_texts(shell, options)
        if not sys.stdin.isatty():
            shell.run(sys.stdin.read())
            return 0
        from barnabas.sql.shell.prompt import interact

        interact(shell)
        return 0
    except Leave:
        return 0
    except Failed:
        return 1
    finally:
        display.spool(None)
        shell.client.close()


def run_texts(shell: Shell, options: ShellOptions) -> int:
    if options.file is not None:
        shell.run_script(options.file)
    for text in options.execute:
        shell.run(text)
    return 0

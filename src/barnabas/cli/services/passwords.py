"""hash-password: reads a password from standard input, and prints it as the users file of BASIC holds it."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import TYPE_CHECKING

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[ToolParser]

HASH_PASSWORD = "hash-password"


def add_hash_password(commands: Commands) -> None:
    commands.add_parser(HASH_PASSWORD, help="print a password as the users file of BASIC holds it")


def run_hash_password(out: Output) -> int:
    from barnabas.services.callers.users import hashed_password

    is_typed = sys.stdin.isatty()
    password = getpass.getpass("password: ") if is_typed else sys.stdin.readline().rstrip("\n")
    if not password:
        raise ToolError("the password is empty: send one on standard input")
    out.line(hashed_password(password))
    return 0

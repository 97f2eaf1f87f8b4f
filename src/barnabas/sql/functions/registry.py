"""The table of functions, and the Python code of each.

`table.json` says what a function takes, gives and does with nulls. A module of this folder registers the
code under the same name. A function whose row says that null arguments give null is never called with one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeVar

from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.functions.user import USER_FUNCTIONS

STRICT = "null if an argument is null"
Code = Callable[..., Any]
C = TypeVar("C", bound=Callable[..., Any])
CODES: dict[str, Code] = {}


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A row of the table. `kind` is scalar, table or aggregate."""

    name: str
    kind: str
    category: str
    signatures: tuple[str, ...]
    what: str
    nulls: str
    notes: str
    examples: tuple[tuple[str, str], ...]

    @property
    def is_strict(self) -> bool:
        return self.nulls == STRICT


@functools.cache
def table() -> dict[str, FunctionRow]:
    data = json.loads(resources.files("barnabas.sql.functions").joinpath("table.json").read_text())
    return {row["name"]: row_of(row) for row in data["functions"]}


def row_of(row: dict[str, Any]) -> FunctionRow:
    examples = tuple((each["call"], each["result"]) for each in row["examples"])
    return FunctionRow(
        row["name"],
        row["kind"],
        row["category"],
        tuple(row["signatures"]),
        row["what"],
        row["nulls"],
        row.get("notes", ""),
        examples,
    )


def user_rows() -> dict[str, FunctionRow]:
    """Functions of the user, as rows of the table."""
    found: dict[str, FunctionRow] = {}
    for name, functions in sorted(USER_FUNCTIONS.by_name.items()):
        first = functions[0]
        signatures = tuple(f"{name}{each.signature}" for each in functions)
        nulls = "reach the function" if first.takes_null else STRICT
        found[name] = FunctionRow(name, first.kind, "user", signatures, first.what, nulls, "", ())
    return found


def row_named(name: str) -> FunctionRow:
    known = {**table(), **user_rows()}
    found = known.get(name.upper())
    if found is None:
        raise SqlError(f"the function {name} does not exist.{did_you_mean(name, known)}")
    return found


def function(name: str) -> Callable[[C], C]:
    """Register the code of a function. Null arguments are kept away from strict ones."""

    def register(code: C) -> C:
        CODES[name] = strict(code) if row_named(name).is_strict else code
        return code

    return register


def strict(code: Code) -> Code:
    @functools.wraps(code)
    def called(*arguments: Any) -> Any:
        return None if None in arguments and any(each is None for each in arguments) else code(*arguments)

    return called

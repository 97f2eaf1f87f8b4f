"""Errors of statements: what is wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

SUGGESTION_LIKENESS_MIN = 0.6


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text of a statement. Lines and columns count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class SqlError(Exception):
    """A statement that cannot be executed. `statement` is its text, where it is known."""

    def __init__(self, message: str, at: Position | None = None, statement: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.statement = statement

    def __str__(self) -> str:
        return f"{self.at}: {self.message}" if self.at is not None else self.message


class SyntaxProblem(SqlError):
    """A text that is no statement."""


class EvaluationError(Exception):
    """An expression that has no value for one row: its column becomes null, and the processing log a line."""


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like the given one, in any case of letters; None if none does."""
    by_upper: dict[str, str] = {}
    for name in known:
        by_upper.setdefault(name.upper(), name)
    found = difflib.get_close_matches(given.upper(), by_upper, 1, SUGGESTION_LIKENESS_MIN)
    return by_upper[found[0]] if found else None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known name; empty if none is near."""
    found = nearest(given, known)
    return f" Did you mean {found}?" if found is not None else ""

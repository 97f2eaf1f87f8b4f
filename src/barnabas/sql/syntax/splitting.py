"""Cuts a text into statements, and puts the values of variables into it.

In: a text with comments, quotes and `;`. Out: single statements with the line and column where each begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.sql.errors import Position, SyntaxProblem, did_you_mean

TEXT_CHARS_MAX = 1_000_000
PIECES = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|`(?:[^`]|``)*(?:`|\Z)|\"(?:[^\"]|\"\")*(?:\"|\Z)|;",
    re.DOTALL,
)
COMMENTS = ("--", "/*")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")


class StatementText(NamedTuple):
    """`text` is without its semicolon. `is_ended` says whether it had one."""

    text: str
    at: Position
    is_ended: bool


def split(text: str) -> Iterator[StatementText]:
    """The statements of a text, one by one. A rest without a semicolon is the last one."""
    if len(text) > TEXT_CHARS_MAX:
        raise SyntaxProblem(f"the text has {len(text)} characters: at most {TEXT_CHARS_MAX} are read")
    start = 0
    for piece in PIECES.finditer(text):
        if piece[0] == ";":
            if (found := _statement(text, start, piece.start(), True)) is not None:
                yield found
            start = piece.end()
        elif piece[0][0] in "'`\"" and (len(piece[0]) == 1 or piece[0][-1] != piece[0][0]):
            raise SyntaxProblem(f"the quote {piece[0][0]} is not closed", place(text, piece.start()))
    if (found := _statement(text, start, len(text), False)) is not None:
        yield found


def _statement(text: str, start: int, end: int, is_ended: bool) -> StatementText | None:
    while start < end:
        if text[start].isspace():
            start += 1
        elif text.startswith(COMMENTS, start):
            comment = PIECES.match(text, start, end)
            start = comment.end() if comment is not None else end
        else:
            return StatementText(text[start:end].rstrip(), place(text, start), is_ended)
    return None


def place(text: str, index: int) -> Position:
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with `${name}` replaced, in quotes too. Names of variables match in any case."""
    known = {name.upper(): value for name, value in variables.items()}

    def value_of(match: re.Match[str]) -> str:
        found = known.get(match[1].upper())
        if found is None:
            hint = did_you_mean(match[1], variables) or f" DEFINE {match[1]} = '…'; sets it."
            raise SyntaxProblem(f"the variable {match[1]} is not defined.{hint}", place(text, match.start()))
        return found

    return VARIABLE.sub(value_of, text)

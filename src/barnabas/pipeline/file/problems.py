"""Problems of a file: what is wrong, where, and what was probably meant. All problems are collected.

In: names, lines. Out: values for people. Does not know: YAML, pipelines.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

NAMES_SHOWN_MAX = 12


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` is the name in the file, as in sources.orders.format; `line` is 0 without a file."""

    path: str
    message: str
    hint: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.path}: {self.message}{hint}"


class FileProblems(Exception):
    """A file with problems; the message lists all of them."""

    def __init__(self, problems: Iterable[Problem], file: Path | None = None) -> None:
        self.problems = sorted(problems, key=lambda each: (each.line, each.path))
        self.file = file
        count = len(self.problems)
        head = f"{file or 'the pipeline'}: {count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  {each}" for each in self.problems)]))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint: the name that was probably meant, or the known names."""
    names = sorted({str(each) for each in known})
    close = difflib.get_close_matches(name, names, 1, 0.6)
    if close:
        return f"did you mean {close[0]}?"
    if not names:
        return "there is none"
    shown = ", ".join(names[:NAMES_SHOWN_MAX])
    return (
        f"there {'is' if len(names) == 1 else 'are'} {shown}{', …' if len(names) > NAMES_SHOWN_MAX else ''}"
    )


def with_lines(problems: Iterable[Problem], lines: dict[str, int]) -> list[Problem]:
    """Problems with the line of their name, or of the nearest section around it."""
    found = []
    for each in problems:
        path = each.path
        while path and path not in lines:
            path = path.rpartition(".")[0] if not path.endswith("]") else path.rpartition("[")[0]
        found.append(replace(each, line=each.line or lines.get(path, 0)))
    return found

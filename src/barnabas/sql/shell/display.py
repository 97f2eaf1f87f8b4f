"""Shows results on a terminal or as text: boxed tables, lines of JSON, errors with a caret.

In: entities, rows, errors. Out: text on a console, and the same in the file of SPOOL. Does not know: servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TextIO

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

PLACE = re.compile(r"^line (\d+), column (\d+): ", re.MULTILINE)
COLUMN_WIDTH_MIN = 8
WIDTH_OF_TEXT = 200  # where there is no terminal


class Display:
    """`output` is TABULAR or JSON. `column_width` 0: as the terminal allows."""

    def __init__(self, stream: TextIO, *, is_terminal: bool) -> None:
        self.output = "TABULAR"
        self.column_width = 0
        self.is_terminal = is_terminal
        self._spool: TextIO | None = None
        self.console = Console(
            file=stream, width=None if is_terminal else WIDTH_OF_TEXT, highlight=False, soft_wrap=False
        )

    # -- spool -------------------------------------------------------------------------------------

    def spool(self, file: TextIO | None) -> None:
        if self._spool is not None:
            self._spool.close()
        self._spool = file

    def note_input(self, text: str) -> None:
        """Write a statement into the file of SPOOL; the terminal shows it already."""
        if self._spool is not None:
            self._spool.write(f"ksql> {text}\n")

    def _print(self, what: object) -> None:
        self.console.print(what)
        if self._spool is not None:
            Console(file=self._spool, width=WIDTH_OF_TEXT, highlight=False).print(what)
            self._spool.flush()

    # -- what is shown -----------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.console.out(text, highlight=False)
        if self._spool is not None:
            self._spool.write(f"{text}\n")
            self._spool.flush()

    def json(self, value: Any) -> None:
        self.line(json.dumps(value, indent=2, ensure_ascii=False))

    def table(self, names: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
        found = Table(title=title or None, title_justify="left", box=box.ASCII2, header_style="bold")
        for name in names:
            found.add_column(Text(name), overflow="fold")
        for row in rows:
            found.add_row(*(Text(shown(each)) for each in row))
        self._print(found)

    def error(self, message: str, statement: str = "") -> None:
        """The message, and the line of the statement with a caret under the place that it names."""
        place = PLACE.search(message)
        lines = statement.splitlines()
        if place is not None and 0 < int(place[1]) <= len(lines):
            line, column = lines[int(place[1]) - 1], int(place[2])
            tab_safe = "".join(sign if sign == "\t" else " " for sign in line[: column - 1])
            self.line(line)
            self.line(f"{tab_safe}{' ' * max(0, column - 1 - len(line))}^")
        self._print(Text(message, style="red" if self.is_terminal else ""))

    def rows(self, names: Sequence[str]) -> LiveTable:
        """A table whose rows come one by one."""
        return LiveTable(self, names)

    def width_of(self, columns: int) -> int:
        """The width of one of so many columns."""
        room = self.console.width - 3 * columns - 1
        return self.column_width or max(COLUMN_WIDTH_MIN, room // max(columns, 1))


class LiveTable:
    """Rows in columns of one width, shown as they come: a long value goes on in further lines."""

    def __init__(self, display: Display, names: Sequence[str]) -> None:
        self._display = display
        self._width = display.width_of(len(names))
        self._border = "+" + "+".join("-" * (self._width + 2) for _ in names) + "+"
        display.line(self._border)
        self.add(names)
        display.line(self._border)

    def add(self, values: Sequence[Any]) -> None:
        cells = [cut(shown(each), self._width) for each in values]
        for index in range(max(map(len, cells), default=0)):
            parts = [set_cell_size(each[index] if index < len(each) else "", self._width) for each in cells]
            self._display.line("| " + " | ".join(parts) + " |")

    def end(self) -> None:
        self._display.line(self._border)


def cut(text: str, width: int) -> list[str]:
    """Pieces of a text that fit."""
    found: list[str] = []
    for line in text.splitlines() or [""]:
        piece = ""
        for sign in line:
            if cell_len(piece) + cell_len(sign) > width:
                found.append(piece)
                piece = ""
            piece += sign
        found.append(piece)
    return found


def shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in value)
        case dict():
            return "{" + ", ".join(f"{name}={shown(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)

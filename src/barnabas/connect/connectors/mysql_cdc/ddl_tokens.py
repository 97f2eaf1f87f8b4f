"""Words of MySQL's statements: names, texts, numbers and signs, comments left out. Pure.

Comments of the form `/*!40101 … */` and `/*M! … */` are statements for the server, so their content counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<space>\s+|--[ \t][^\n]*|--$|\#[^\n]*|/\*(?!M?!)(?:.|\n)*?\*/|/\*M?!\d*|\*/)
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<text>(?:_\w+\s*|[nNxXbB])?'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w$]))
    |(?P<word>[\w$@\x80-\U0010ffff]+)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
STATEMENT_CHARS_MAX = 4 * 1024 * 1024
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


class Token(NamedTuple):
    kind: str  # word, quoted, text, number, sign, end
    value: str

    @property
    def upper(self) -> str:
        """The word in capitals; empty for everything that is no plain word or sign."""
        return self.value.upper() if self.kind in ("word", "sign") else ""


END = Token("end", "")


class DdlError(ValueError):
    """A statement that cannot be understood; the message has its beginning."""


def tokens_of(statement: str) -> list[Token]:
    if len(statement) > STATEMENT_CHARS_MAX:
        raise DdlError(f"a statement of {len(statement)} characters is longer than {STATEMENT_CHARS_MAX}")
    found = []
    for match in TOKEN.finditer(statement):
        kind = match.lastgroup or "sign"
        text = match.group()
        if kind == "quoted":
            found.append(Token(kind, text[1:-1].replace("``", "`")))
        elif kind == "text":
            found.append(Token(kind, unquoted(text)))
        elif kind != "space":
            found.append(Token(kind, text))
    return found


def unquoted(text: str) -> str:
    """The content of a text literal, with or without an introducer of its character set."""
    mark = text[-1]
    inner = text[text.index(mark) + 1 : -1].replace(mark * 2, mark)
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), inner, flags=re.DOTALL)


class Cursor:
    """Walks over the tokens of one statement."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self._tokens = tokens_of(statement)
        self.place = 0

    def peek(self, ahead: int = 0) -> Token:
        place = self.place + ahead
        return self._tokens[place] if place < len(self._tokens) else END

    def next(self) -> Token:
        token = self.peek()
        self.place += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these words if they come next, all of them or none."""
        if all(self.peek(number).upper == word for number, word in enumerate(words)):
            self.place += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str:
        """Take the next word if it is one of these."""
        found = self.peek().upper
        if found and found in words:
            self.place += 1
            return found
        return ""

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.error(f"{' '.join(words)} was expected at {self.peek().value!r}")

    def name(self) -> str:
        token = self.next()
        if token.kind not in ("word", "quoted", "text", "number"):
            raise self.error(f"a name was expected at {token.value!r}")
        return token.value

    def table(self, database: str) -> tuple[str, str]:
        """A table with or without its database."""
        first = self.name()
        if self.accept("."):
            return first, self.name()
        return database, first

    def skip_brackets(self) -> None:
        """Pass over `( … )` if it comes next."""
        if self.peek().upper != "(":
            return
        depth = 0
        while True:
            token = self.next()
            if token.kind == "end":
                raise self.error("a bracket is not closed")
            depth += {"(": 1, ")": -1}.get(token.upper, 0)
            if depth == 0:
                return

    def skip_part(self) -> None:
        """Pass over everything up to the next comma or closing bracket on this level."""
        while self.peek().kind != "end" and self.peek().upper not in (",", ")"):
            if self.peek().upper == "(":
                self.skip_brackets()
            else:
                self.next()

    def error(self, text: str) -> DdlError:
        return DdlError(f"{text} in {self.statement[:200]!r}")

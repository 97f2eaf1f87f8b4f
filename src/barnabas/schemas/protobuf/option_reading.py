"""Reads names, numbers and options of a .proto file.

In: text. Out: words one by one; syntax.Option values. InvalidSchema names line and column.
Does not know: which declarations there are; reading.py builds those from these parts.
"""

from __future__ import annotations

import re

from barnabas.schemas.model import InvalidSchema
from barnabas.schemas.protobuf.syntax import (
    DEPTH_MAX,
    Braces,
    Many,
    NamePart,
    Number,
    Option,
    Text,
    Value,
    Word,
)
from barnabas.schemas.protobuf.tokens import Kind, Lines, tokens, unquoted

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+\Z|[0-9]+\Z")
DIGITS_MAX = 400  # of a number; Python takes quadratic time for longer ones


class TokenReader:
    """Walks over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        self._tokens = tokens(text, self._lines)
        self._at = 0

    @property
    def kind(self) -> Kind:
        return self._tokens[self._at].kind

    @property
    def line(self) -> int:
        return self._lines.line(self._tokens[self._at].offset)

    def peek(self) -> str:
        return self._tokens[self._at].text

    def found(self) -> str:
        """The next token as errors say it."""
        return self.peek() if self.kind is Kind.END else repr(self.peek()[:40])

    def spaced(self) -> bool:
        """True if there is a space before the next token."""
        before = self._tokens[self._at - 1]
        return before.offset + len(before.text) < self._tokens[self._at].offset

    def word(self) -> str:
        token = self._tokens[self._at]
        if token.kind is Kind.END:
            raise self.refuse("the text ends in the middle of a declaration", back=0)
        self._at += 1
        return token.text

    def refuse(self, problem: str, back: int = 1) -> InvalidSchema:
        """The error that names the place of the last token read."""
        token = self._tokens[max(0, self._at - back)]
        return InvalidSchema(f"{self._lines.place(token.offset)}: {problem}")

    def expect(self, text: str) -> None:
        if self.peek() != text:
            raise self.refuse(f"expected {text!r}, found {self.found()}", back=0)
        self._at += 1

    def identifier(self) -> str:
        if self.kind is not Kind.WORD:
            raise self.refuse(f"expected a name, found {self.found()}", back=0)
        return self.word()

    def check_identifier(self, word: str) -> None:
        if not IDENTIFIER.match(word):
            raise self.refuse(f"expected a name, found {word!r}")

    def dotted(self) -> str:
        parts = [self.identifier()]
        while self.peek() == "." and self.kind is Kind.SIGN:
            self.word()
            parts.append(self.identifier())
        return ".".join(parts)

    def type_name(self, first: str) -> str:
        """A type's name, whose first word was read: `T`, `a.b.T` or `.a.b.T`."""
        if first == ".":
            return "." + self.dotted()
        self.check_identifier(first)
        if self.peek() != ".":
            return first
        self.word()
        return f"{first}.{self.dotted()}"

    def string(self) -> str:
        if self.kind is not Kind.STRING:
            raise self.refuse(f"expected a string, found {self.found()}", back=0)
        try:
            return self._literal().decode()
        except UnicodeDecodeError:
            raise self.refuse("the string is not UTF-8") from None

    def _literal(self) -> bytes:
        """One string literal, or several in a row, which count as one."""
        parts: list[bytes] = []
        while self.kind is Kind.STRING:
            parts.append(unquoted(self.word()))
        return b"".join(parts)

    def integer(self, most: int, *, signed: bool = False) -> int:
        negative = signed and self.peek() == "-"
        if negative:
            self.word()
        text = self.peek()
        if self.kind is not Kind.NUMBER or not _INTEGER.match(text):
            raise self.refuse(f"expected a whole number, found {self.found()}", back=0)
        self.word()
        value = whole_number(text)
        if value is None or value > most + negative:
            raise self.refuse(f"number {text[:30]} is greater than {most}")
        return -value if negative else value


def whole_number(text: str) -> int | None:
    """The value of a decimal, octal (0...) or hexadecimal number; none if it is none."""
    if len(text) > DIGITS_MAX:
        return None
    try:
        if text[:2] in ("0x", "0X"):
            return int(text, 16)
        return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)
    except ValueError:
        return None


class OptionReader(TokenReader):
    """Reads options and their values."""

    def option(self, line: int) -> Option:
        """An option after the word `option`, up to its semicolon."""
        found = self._assignment(line)
        self.expect(";")
        return found

    def options(self) -> tuple[Option, ...]:
        """Options in brackets, if there are any."""
        if self.peek() != "[":
            return ()
        self.word()
        found = [self._assignment(self.line)]
        while self.peek() == ",":
            self.word()
            found.append(self._assignment(self.line))
        self.expect("]")
        return tuple(found)

    def any_value(self) -> Value:
        """A value alone, up to the end of the text."""
        value = self._value(1)
        if self.kind is not Kind.END:
            raise self.refuse(f"expected one value, found {self.found()}", back=0)
        return value

    def _assignment(self, line: int) -> Option:
        name = [self._name_part()]
        while self.peek() == ".":
            self.word()
            name.append(self._name_part())
        self.expect("=")
        value = self._value(1)  # protoc takes no list here, but registries hold such texts
        return Option(tuple(name), value, line)

    def _name_part(self) -> NamePart:
        if self.peek() != "(":
            return NamePart(self.identifier())
        self.word()
        name = self.type_name(self.word())
        self.expect(")")
        return NamePart(name, is_extension=True)

    def _scalar(self) -> Value:
        if self.kind is Kind.STRING:
            return Text(self._literal())
        sign = self.word() if self.peek() == "-" else ""
        kind = self.kind
        text = self.word()
        if kind is Kind.NUMBER:
            return Number(sign + text)
        if kind is Kind.WORD:
            return Word(sign + text)
        raise self.refuse(f"expected a value, found {text!r}")

    def _braces(self, depth: int) -> Braces:
        if depth > DEPTH_MAX:
            raise self.refuse(f"values are nested more than {DEPTH_MAX} deep")
        close = "}" if self.word() == "{" else ">"
        entries: dict[str, Value] = {}
        lists: dict[str, list[Value]] = {}  # of keys that occur again: they are elements of one list
        while self.peek() != close:
            key = self._key()
            if self.peek() == ":":
                self.word()
            elif self.peek() not in ("{", "<"):
                raise self.refuse(f"expected ':', found {self.found()}", back=0)
            value = self._value(depth + 1)
            if key in entries:
                known = entries[key]
                elements = lists.setdefault(key, list(known.values) if isinstance(known, Many) else [known])
                elements.extend(value.values if isinstance(value, Many) else [value])
            else:
                entries[key] = value
            if self.peek() in (",", ";"):
                self.word()
        self.word()
        return Braces(
            tuple((key, Many(tuple(lists[key])) if key in lists else value) for key, value in entries.items())
        )

    def _key(self) -> str:
        if self.peek() != "[":
            return self.identifier()
        self.word()
        name = self.dotted()
        if self.peek() == "/":  # the type of a google.protobuf.Any
            self.word()
            name += "/" + self.dotted()
        self.expect("]")
        return f"[{name}]"

    def _value(self, depth: int) -> Value:
        if self.peek() in ("{", "<"):
            return self._braces(depth)
        if self.peek() != "[":
            return self._scalar()
        if depth > DEPTH_MAX:
            raise self.refuse(f"values are nested more than {DEPTH_MAX} deep")
        self.word()
        values: list[Value] = []
        while self.peek() != "]":
            values.append(self._value(depth + 1))
            if self.peek() != "]":
                self.expect(",")
        self.word()
        return Many(tuple(values))

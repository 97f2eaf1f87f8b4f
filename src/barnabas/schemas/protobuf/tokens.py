"""The words of a .proto file.

In: text. Out: tokens with their offsets, without spaces and comments; strings with their escapes resolved.
Does not know: which words may follow each other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum, auto
from typing import NamedTuple

from barnabas.schemas.model import InvalidSchema


class Kind(Enum):
    WORD = auto()
    NUMBER = auto()
    STRING = auto()
    SIGN = auto()  # punctuation, one character each
    END = auto()


class Token(NamedTuple):
    kind: Kind
    text: str
    offset: int


_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>(?:0[xX][0-9a-fA-F]+
          | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)(?![A-Za-z0-9_]))
      | (?P<string>"(?:[^"\\\n]|\\[^\n])*" | '(?:[^'\\\n]|\\[^\n])*')
      | (?P<sign>[][(){}<>;:,=.+\-]|/(?!\*))""",
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"word": Kind.WORD, "number": Kind.NUMBER, "string": Kind.STRING, "sign": Kind.SIGN}

_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Lines:
    """Line and column of an offset, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def place(self, offset: int) -> str:
        line = self.line(offset)
        return f"line {line}, column {offset - self._starts[line - 1] + 1}"


def tokens(text: str, lines: Lines) -> list[Token]:
    """All tokens of the text, the last one of kind END."""
    found: list[Token] = []
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise InvalidSchema(f"{lines.place(offset)}: {_problem(text, offset)}")
        group = match.lastgroup
        if group != "space" and group is not None:
            found.append(Token(_KINDS[group], match.group(), offset))
        offset = match.end()
    found.append(Token(Kind.END, "the end of the file", offset))
    return found


def _problem(text: str, offset: int) -> str:
    if text.startswith("/*", offset):
        return "a comment is not closed by */"
    if text[offset] in "\"'":
        return "a string is not closed on its line"
    return f"unexpected {text[offset]!r}"


def unquoted(literal: str) -> bytes:
    """The bytes of a quoted string."""
    out = bytearray()
    offset = 1
    end = len(literal) - 1
    for match in _ESCAPE.finditer(literal, 1, end):
        out += literal[offset : match.start()].encode("utf-8", "surrogatepass")
        offset = match.end()
        hexadecimal, octal, short, long, other = match.groups()
        if hexadecimal is not None:
            out.append(int(hexadecimal, 16))
        elif octal is not None:
            out.append(int(octal, 8) & 0xFF)
        elif short is not None or long is not None:
            point = int(short or long, 16)
            if point > 0x10FFFF:
                raise InvalidSchema(f"{match.group()} is no Unicode character")
            out += chr(point).encode("utf-8", "surrogatepass")
        else:
            out += _SIMPLE_ESCAPES.get(other, other).encode("utf-8", "surrogatepass")
    return bytes(out + literal[offset:end].encode("utf-8", "surrogatepass"))


_C_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 92: "\\\\", 39: "\\'", 34: '\\"'}
_QUOTED = {**_C_ESCAPES, 7: "\\a", 8: "\\b", 12: "\\f", 11: "\\v"}


def quoted(value: bytes) -> str:
    """The string literal of these bytes: characters as they are if they are UTF-8, else octal escapes."""
    try:
        text = value.decode("utf-8").translate(_QUOTED)
    except UnicodeDecodeError:
        text = octal_escaped(value)
    return f'"{text}"'


def octal_escaped(value: bytes) -> str:
    """Printable ASCII as it is, the rest in the escapes of C: the form of bytes in descriptors."""
    return "".join(_C_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in value)

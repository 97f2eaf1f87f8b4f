"""Parser of Java's properties format, the format of `server.properties`.

In: text, or bytes (decoded as ISO-8859-1, as in Java). Out: names and values; the last value of a repeated
name. Supports comments, blank lines, continuations, escapes, and `=`, `:` or blanks as separators.
Does not know: any setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from barnabas.settings.errors import SettingsError

BLANKS = " \t\f"
LONE_BACKSLASH = r"(?:\A|[\r\n])[ \t\f]*\\[\r\n]?\Z"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_bytes(data: bytes) -> dict[str, str]:
    return parse(data.decode("latin-1"))


def text_of(data: bytes) -> str:
    """The text of a file that people write: UTF-8 as editors save it, else ISO-8859-1 as Java reads it."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse(text: str) -> dict[str, str]:
    return dict(split_entry(line) for line in logical_lines(text))


def logical_lines(text: str) -> Iterator[str]:
    """Lines with continuations joined, without comments and blank lines."""
    pending = ""
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    # A backslash at the end of the file continues nothing. Alone on its line, it is an empty entry in Java.
    if pending or re.search(LONE_BACKSLASH, text):
        yield pending


def split_entry(line: str) -> tuple[str, str]:
    """Split a line into name and value. The name ends at the first unescaped `=`, `:` or blank."""
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(BLANKS)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(BLANKS)
    return unescape(line[:end]), unescape(rest)


def unescape(text: str) -> str:
    if "\\" not in text:
        return text
    found = re.sub(r"\\(?:u(.{0,4})|(.?))", replacement, text, flags=re.DOTALL)
    # Java writes characters beyond 16 bits as two escapes, a surrogate pair.
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def replacement(match: re.Match[str]) -> str:
    digits, character = match.groups()
    if character is not None:
        return ESCAPES.get(character, character)
    if not re.fullmatch("[0-9a-fA-F]{4}", digits):
        raise SettingsError(f"Malformed \\uxxxx encoding: \\u{digits}", allowed="four hexadecimal digits")
    return chr(int(digits, 16))

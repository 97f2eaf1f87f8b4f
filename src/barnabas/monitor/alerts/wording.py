"""Texts of alerts: names of groups, connectors and clients may hold any character, and people paste commands
into a shell.

In: a template with names in braces, and values. Out: text in which every character is visible, or a command
in which each value stays one word. `{name:url}` in a command is the value as a part of a URL. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from urllib.parse import quote

PART = re.compile(r"\{\{|\}\}|\{(\w+)(:url)?\}|\\.|.", re.DOTALL)
QUOTES = "'\""
ESCAPES = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\", "'": r"\'"}


def visible(text: str) -> str:
    """The text with escapes for line ends, control characters, and those that change its direction."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else escaped(each) for each in text)


def escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def command(template: str, values: Mapping[str, str]) -> str:
    """A command for a shell. Names without a value stay as they are. ValueError: a brace is on its own."""
    parts: list[str] = []
    quoted_by = ""
    for found in PART.finditer(template):
        text, name, is_url = found[0], found[1], bool(found[2])
        if name is not None:
            value = values.get(name)
            if value is not None:
                text = quote(value, safe="") if is_url else word(value, quoted_by)
        elif text in ("{{", "}}"):
            text = text[0]
        elif text in ("{", "}"):
            raise ValueError(f"a single {text} in {template!r}: write {text * 2}")
        elif text in QUOTES and quoted_by in ("", text):
            quoted_by = "" if quoted_by else text
        parts.append(text)
    return "".join(parts)


def word(value: str, quoted_by: str = "") -> str:
    """The value as a word of a shell. Inside quotes of the template, these end before it and go on behind."""
    found = shlex.quote(value) if value.isprintable() else "$'" + "".join(map(ansi, value)) + "'"
    return found if found == value else f"{quoted_by}{found}{quoted_by}"


def ansi(sign: str) -> str:
    """A character between $' and '."""
    if sign in ESCAPES:
        return ESCAPES[sign]
    return sign if sign.isprintable() else "".join(f"\\x{byte:02x}" for byte in sign.encode())

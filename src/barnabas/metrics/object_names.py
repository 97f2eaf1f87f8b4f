"""Names of MBeans and patterns of them, as JMX defines both.

In: `domain:key=value,key="quoted value"`; in a pattern `*` and `?` stand in the domain and in values, and
`,*` admits further keys. Out: names that can be compared, matched and written canonically (keys in order).
Does not know: which MBeans there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

NAME_LENGTH_MAX = 4096
PROPERTY = re.compile(r'([^=,:*?"]+)=("(?:[^"\\]|\\.)*"|[^,=:"]*)')
UNQUOTE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n"}


@dataclass(frozen=True, slots=True)
class ObjectName:
    domain: str
    properties: tuple[tuple[str, str], ...]  # values as they are written, quotes included
    is_open: bool = False  # further keys are admitted: only a pattern is

    @property
    def is_pattern(self) -> bool:
        return self.is_open or has_wildcard(self.domain) or any(has_wildcard(v) for _, v in self.properties)

    @property
    def canonical(self) -> str:
        """The keys in order, as JMX compares names."""
        return f"{self.domain}:{self.keys_text(is_sorted=True)}"

    def keys_text(self, *, is_sorted: bool) -> str:
        pairs = sorted(self.properties) if is_sorted else self.properties
        return ",".join([*(f"{key}={value}" for key, value in pairs), *(["*"] if self.is_open else [])])

    def matches(self, name: ObjectName) -> bool:
        """Whether this pattern, or name, covers a name."""
        if not expression(self.domain).fullmatch(name.domain):
            return False
        wanted, given = dict(self.properties), dict(name.properties)
        if wanted.keys() - given.keys() or (not self.is_open and given.keys() - wanted.keys()):
            return False
        return all(expression(value).fullmatch(given[key]) for key, value in wanted.items())


def parse_object_name(text: str) -> ObjectName:
    """ValueError says what is wrong with the text."""
    if len(text) > NAME_LENGTH_MAX:
        raise ValueError(f"the name of an MBean has {len(text)} characters, {NAME_LENGTH_MAX} are allowed")
    domain, colon, rest = text.partition(":")
    if not colon:
        raise ValueError(f"Domain part must be specified: {text!r} is not domain:key=value,...")
    properties: dict[str, str] = {}
    position, is_open = 0, False
    while position < len(rest):
        if rest[position] == "*" and rest[position + 1 : position + 2] in ("", ","):
            is_open, position = True, position + 2
            continue
        found = PROPERTY.match(rest, position)
        if found is None or rest[found.end() : found.end() + 1] not in ("", ","):
            raise ValueError(f"Invalid key property list in {text!r}: key=value, separated by commas")
        if found[1] in properties:
            raise ValueError(f"Duplicate key {found[1]!r} in {text!r}")
        properties[found[1]] = found[2]
        position = found.end() + 1
    if not properties and not is_open:
        raise ValueError(f"Key properties cannot be empty: {text!r} is not domain:key=value,...")
    return ObjectName(domain, tuple(properties.items()), is_open)


def unquoted(value: str) -> str:
    """The text that a value stands for."""
    if len(value) < 2 or value[0] != '"':
        return value
    return UNQUOTE.sub(lambda found: ESCAPED.get(found[1], found[1]), value[1:-1])


def has_wildcard(text: str) -> bool:
    """Quoted values may hold escaped wildcards, which stand for themselves."""
    return any(letter in "*?" for letter in UNQUOTE.sub("", text))


@lru_cache(maxsize=1024)
def expression(text: str) -> re.Pattern[str]:
    parts, position = [], 0
    while position < len(text):
        letter = text[position]
        if letter == "\\" and text[:1] == '"':
            parts.append(re.escape(text[position : position + 2]))
            position += 2
            continue
        parts.append({"*": ".*", "?": "."}.get(letter) or re.escape(letter))
        position += 1
    return re.compile("".join(parts), re.DOTALL)

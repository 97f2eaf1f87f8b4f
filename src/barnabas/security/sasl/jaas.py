"""JAAS texts: which login module a mechanism uses, and its options.

In: the text of `sasl.jaas.config` (one entry), or of a JAAS file (named sections of entries). Out: entries.
Errors name the place in the text and never show an option's value: most values are secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.security.errors import SecuritySettingsError

FLAGS = ("required", "requisite", "sufficient", "optional")
TOKEN = r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/)
  | "(?P<double>(?:[^"\\]|\\.)*)"
  | '(?P<single>(?:[^'\\]|\\.)*)'
  | (?P<sign>[;={}])
  | (?P<word>[^\s;={}"']+)
"""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
FORM = 'expected `some.LoginModule required key="value" ...;`'


@dataclass(frozen=True, slots=True)
class JaasEntry:
    module: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # passwords among them


def parse_jaas(text: str) -> JaasEntry:
    """The one entry of a `sasl.jaas.config`. SecuritySettingsError if the text has another form."""
    tokens = Tokens(text)
    entry = parse_entry(tokens)
    if tokens.peek() is not None:
        raise tokens.error("there is text after the semicolon: only one login module is allowed")
    return entry


def parse_jaas_file(text: str) -> dict[str, tuple[JaasEntry, ...]]:
    """The sections of a JAAS file: `KafkaServer { module required ...; };`."""
    tokens = Tokens(text)
    sections: dict[str, tuple[JaasEntry, ...]] = {}
    while (name := tokens.peek()) is not None:
        tokens.next()
        tokens.expect("{")
        entries = []
        while tokens.peek() != "}":
            entries.append(parse_entry(tokens))
        tokens.next()
        tokens.expect(";")
        sections[name] = tuple(entries)
    return sections


def parse_entry(tokens: Tokens) -> JaasEntry:
    module = tokens.next()
    if tokens.next().lower() not in FLAGS:
        raise tokens.error(f"the login module must be followed by one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while (name := tokens.next()) != ";":
        tokens.expect("=")
        options[name] = tokens.next()
    return JaasEntry(module, options)


class Tokens:
    def __init__(self, text: str) -> None:
        self._tokens: Iterator[tuple[int, str]] = iter(list(split(text)))
        self._next: tuple[int, str] | None = next(self._tokens, None)
        self._at = 0

    def peek(self) -> str | None:
        return self._next[1] if self._next is not None else None

    def next(self) -> str:
        if self._next is None:
            raise self.error("the text ends too early: is the semicolon missing?")
        self._at, token = self._next
        self._next = next(self._tokens, None)
        return token

    def expect(self, sign: str) -> None:
        if self.next() != sign:
            raise self.error(f"`{sign}` is missing")

    def error(self, problem: str) -> SecuritySettingsError:
        return SecuritySettingsError(
            f"the JAAS text is wrong near character {self._at + 1}: {problem}; {FORM}"
        )


def split(text: str) -> Iterator[tuple[int, str]]:
    position = 0
    while position < len(text):
        found = re.compile(TOKEN, re.VERBOSE | re.DOTALL).match(text, position)
        if found is None:  # only a quote without its end matches nothing
            raise SecuritySettingsError(
                f"the JAAS text is wrong at character {position + 1}: the closing quote is missing"
            )
        if found.lastgroup in ("double", "single"):
            yield position, unescaped(found[found.lastgroup])
        elif found.lastgroup != "blank":
            yield position, found[0]
        position = found.end()


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)

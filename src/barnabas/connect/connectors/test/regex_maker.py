"""Makes texts up that match a small regular expression: literals, classes, groups of choices, counts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from barnabas.connect.plugins import ConnectError

TextMaker = Callable[[Random], str]
REPEAT_MAX = 1000
PRINTABLE = "".join(map(chr, range(32, 127)))  # what a class with ^ chooses from
DIGITS = "0123456789"
ESCAPES = {"d": DIGITS, "w": DIGITS + "abcdefghijklmnopqrstuvwxyz_", "s": " "}


def regex_maker(pattern: str, path: str) -> TextMaker:
    """The maker of a pattern's texts. ConnectError says where the pattern is not understood."""
    parser = Parser(pattern, path)
    make = parser.choices()
    if parser.at < len(pattern):
        raise parser.error("a bracket that was not opened")
    return make


class Parser:
    def __init__(self, pattern: str, path: str) -> None:
        self._pattern, self._path, self.at = pattern, path, 0

    def error(self, what: str) -> ConnectError:
        return ConnectError(f"{self._path}: regex {self._pattern!r}, character {self.at}: {what}")

    def _next(self) -> str:
        if self.at >= len(self._pattern):
            raise self.error("it ends too early")
        self.at += 1
        return self._pattern[self.at - 1]

    def _has(self, character: str) -> bool:
        return self.at < len(self._pattern) and self._pattern[self.at] == character

    def choices(self) -> TextMaker:
        found = [self._sequence()]
        while self._has("|"):
            self.at += 1
            found.append(self._sequence())
        return found[0] if len(found) == 1 else lambda rng: rng.choice(found)(rng)

    def _sequence(self) -> TextMaker:
        parts: list[tuple[TextMaker, int, int]] = []
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            parts.append((self._atom(), *self._count()))
        return lambda rng: "".join(
            make(rng) for make, low, high in parts for _ in range(rng.randint(low, high))
        )

    def _atom(self) -> TextMaker:
        first = self._next()
        if first == "(":
            if self._pattern.startswith("?:", self.at):
                self.at += 2
            make = self.choices()
            if self._next() != ")":
                raise self.error("a group has no end")
            return make
        if first == "[":
            letters = self._letters()
        elif first == "\\":
            escaped = self._next()
            letters = ESCAPES.get(escaped, escaped)
        elif first in "*+?{":
            raise self.error(f"{first!r} has nothing before it")
        else:
            letters = DIGITS if first == "." else first
        return lambda rng: rng.choice(letters)

    def _letters(self) -> str:
        is_negated = self._has("^")
        self.at += is_negated
        found = ""
        while (each := self._next()) != "]":
            if each == "\\":
                escaped = self._next()
                found += ESCAPES.get(escaped, escaped)
            elif self._has("-") and not self._pattern.startswith("-]", self.at):
                self.at += 1
                found += "".join(map(chr, range(ord(each), ord(self._next()) + 1)))
            else:
                found += each
        if is_negated:
            found = "".join(each for each in PRINTABLE if each not in found)
        if not found:
            raise self.error("an empty class")
        return found

    def _count(self) -> tuple[int, int]:
        if self.at >= len(self._pattern):
            return 1, 1
        sign = self._pattern[self.at]
        if sign in "?*+":
            self.at += 1
            return {"?": (0, 1), "*": (0, 8), "+": (1, 8)}[sign]
        if sign != "{":
            return 1, 1
        end = self._pattern.find("}", self.at)
        low, comma, high = self._pattern[self.at + 1 : end].partition(",")
        try:
            least = int(low)
            most = least if not comma else int(high) if high else least + 8
        except ValueError:
            raise self.error("a count must be {n} or {n,m}") from None
        if not 0 <= least <= most <= REPEAT_MAX:
            raise self.error(f"a count must be at most {REPEAT_MAX}")
        self.at = end + 1
        return least, most

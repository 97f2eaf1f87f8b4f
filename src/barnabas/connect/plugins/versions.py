"""Versions of plugins that a configuration demands (KIP-891): one version, a range of Maven's, or `latest`.

In: a text such as `4.3.1`, `[4.0,5.0)` or `(,1.0],[1.2,)`. Out: whether a version is in it, or what is wrong
with the text. Does not know: plugins, settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

LATEST = "latest"
QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
ALIASES = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc", "ga": "", "final": "", "release": ""}
PARTS = re.compile(r"[0-9]+|[^0-9.\-_]+")
NOT_FOUND = "Plugin {} not found that matches the version range {}, available versions: [{}]"

Part = tuple[int, int, str]  # the kind, a number, a text: parts compare by it
RELEASE: Part = (0, QUALIFIERS.index(""), "")
ZERO: Part = (2, 0, "")


def parts_of(version: str) -> list[Part]:
    """The parts that count: zeros at the end do not, nor those before a word."""
    found: list[Part] = []
    for text in PARTS.findall(version.lower()):
        if text.isdigit():
            found.append((2, int(text), ""))
            continue
        word = ALIASES.get(text, text)
        found = trimmed(found)
        found.append((0, QUALIFIERS.index(word), "") if word in QUALIFIERS else (1, 0, word))
    return trimmed(found)


def trimmed(parts: list[Part]) -> list[Part]:
    while parts and parts[-1] in (ZERO, RELEASE):
        parts.pop()
    return parts


def compare(one: str, other: str) -> int:
    """Below 0, 0 or above 0, as Maven orders versions."""
    for first, second in zip_longest(parts_of(one), parts_of(other), fillvalue=RELEASE):
        if first != second:
            return -1 if first < second else 1
    return 0


@dataclass(frozen=True, slots=True)
class Span:
    """Versions between two, None where there is no bound."""

    lower: str | None
    has_lower: bool
    upper: str | None
    has_upper: bool

    def __contains__(self, version: str) -> bool:
        if self.lower is not None and compare(version, self.lower) < (0 if self.has_lower else 1):
            return False
        return self.upper is None or compare(version, self.upper) <= (0 if self.has_upper else -1)

    def __str__(self) -> str:
        begin, end = "[" if self.has_lower else "(", "]" if self.has_upper else ")"
        return f"{begin}{self.lower or ''},{self.upper or ''}{end}"


def span_of(text: str) -> Span:
    """One span, in its brackets."""
    has_lower, has_upper = text.startswith("["), text.endswith("]")
    lower, comma, upper = (part.strip() for part in text[1:-1].partition(","))
    if not comma:
        if not (has_lower and has_upper):
            raise ValueError(f"Single version must be surrounded by []: {text}")
        return Span(lower, True, lower, True)
    if lower and upper:
        order = compare(lower, upper)
        if order > 0 or (order == 0 and not (has_lower and has_upper)):
            raise ValueError(f"Range defies version ordering: {text}")
    return Span(lower or None, has_lower, upper or None, has_upper)


def spans_of(wanted: str) -> list[Span]:
    """The spans of a demand; ValueError says what is wrong with it. A version alone is that version only."""
    text = rest = wanted.strip()
    found: list[Span] = []
    while rest.startswith(("[", "(")):
        ends = [place for place in map(rest.find, ")]") if place >= 0]
        if not ends:
            raise ValueError(f"Unbounded range: {text}")
        found.append(span_of(rest[: min(ends) + 1]))
        rest = rest[min(ends) + 1 :].strip().removeprefix(",").strip()
    if not found:
        return [span_of(f"[{text}]")]
    if rest:
        raise ValueError(f"Only fully-qualified sets allowed in multiple set scenario: {text}")
    return found


def mismatch(name: str, version: str, wanted: str | None) -> str | None:
    """The error for a plugin whose version is not the wanted one. ValueError: the demand makes no sense."""
    if wanted is None or wanted.strip() == LATEST:
        return None
    spans = spans_of(wanted)
    if any(version in span for span in spans):
        return None
    return NOT_FOUND.format(name, ",".join(map(str, spans)), version)

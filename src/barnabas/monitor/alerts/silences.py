"""Silences and maintenance windows: alerts that are seen and recorded, and nobody is told of.

In: matchers on labels, a time. Out: which silence covers an alert. A silence has a begin and an end; a
maintenance window repeats on days of the week, at a time of day in its own time zone, also past midnight.
Does not know: clocks, alerts' states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from barnabas.expressions import matching as expressions
from barnabas.expressions.chars import RegexError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PATTERN_CHARS_MAX = 500
PATTERNS_MAX = 1_000  # compiled ones that are kept


@lru_cache(PATTERNS_MAX)
def compiled(pattern: str) -> expressions.Matcher:
    """Patterns come from requests: they are matched in bounded time."""
    return expressions.matcher(pattern)


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label, as Alertmanager has it."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def __post_init__(self) -> None:
        if self.is_regex:
            if len(self.value) > PATTERN_CHARS_MAX:
                raise ValueError(f"matcher {self.name}: a pattern has at most {PATTERN_CHARS_MAX} characters")
            try:
                compiled(self.value)
            except RegexError as error:
                raise ValueError(f"matcher {self.name}: {self.value!r} is no pattern: {error}") from None

    def matches(self, labels: Mapping[str, str]) -> bool:
        given = labels.get(self.name, "")
        found = compiled(self.value).matches(given) if self.is_regex else given == self.value
        return found == self.is_equal


TEXT = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*(=~|!~|!=|=)\s*"?(.*?)"?\s*')


def parse_matcher(text: str) -> Matcher:
    """`name=value`, `name!=value`, `name=~pattern`, `name!~pattern`."""
    found = TEXT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is no matcher: write name=value, name!=value, name=~pattern or name!~pattern"
        )
    name, operator, value = found.groups()
    return Matcher(name, value, operator.endswith("~"), not operator.startswith("!"))


def match_all(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    return all(each.matches(labels) for each in matchers)


@dataclass(frozen=True, slots=True)
class Silence:
    id: str
    matchers: tuple[Matcher, ...]
    starts_ms: int
    ends_ms: int
    created_by: str
    comment: str

    def covers(self, labels: Mapping[str, str], now_ms: int) -> bool:
        return self.starts_ms <= now_ms < self.ends_ms and match_all(self.matchers, labels)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Silence:
        matchers = tuple(Matcher(**each) for each in found["matchers"])
        return Silence(**{**found, "matchers": matchers})


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """`days` are those on which the window begins; empty: every day. An `until` before `since` is on the next
    day."""

    name: str
    since: time
    until: time
    days: tuple[str, ...] = ()
    zone: str = "UTC"
    matchers: tuple[Matcher, ...] = ()

    def covers(self, labels: Mapping[str, str], now_ms: int) -> bool:
        return self.is_open(now_ms) and match_all(self.matchers, labels)

    def is_open(self, now_ms: int) -> bool:
        local = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(self.zone))
        return any(self._is_open_of(local, begun) for begun in (local, local - timedelta(days=1)))

    def _is_open_of(self, local: datetime, begun: datetime) -> bool:
        """Whether the window that began on the day of `begun` is open."""
        if self.days and DAYS[begun.weekday()] not in self.days:
            return False
        since = datetime.combine(begun.date(), self.since, local.tzinfo)
        last = begun.date() if self.until > self.since else begun.date() + timedelta(days=1)
        until = datetime.combine(last, self.until, local.tzinfo)
        # Times of one zone are compared by their clock, which has an hour twice in autumn.
        return since.timestamp() <= local.timestamp() < until.timestamp()


def covered_by(
    labels: Mapping[str, str],
    now_ms: int,
    silences: Iterable[Silence],
    windows: Iterable[MaintenanceWindow],
) -> list[str]:
    """The ids of silences and the names of windows that cover these labels now."""
    found = [each.id for each in silences if each.covers(labels, now_ms)]
    return found + [f"maintenance: {each.name}" for each in windows if each.covers(labels, now_ms)]

"""A rule: which measured value is wrong, for how long, and what a person should do about it.

In: findings of one check. Out: whether each of them violates the rule. A rule has two limits: a finding that
fires at `above` (or `below`) is good again only at `good_at`, so that a value around the limit does not fire
again and again. Does not know: time, who is told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.monitor.alerts import wording

NUMBER_MAX = 1e15  # larger ones are written with an exponent
Labels = tuple[tuple[str, str], ...]  # sorted by name


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured value: of a cluster, a broker, a group. `detail` names some of the objects behind it.
    `labels` say which object it is; `words` are for texts alone."""

    value: float
    labels: Labels = ()
    detail: str = ""
    words: Labels = ()
    subject: object = field(default=None, compare=False, repr=False)  # what was measured, for templates


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    check: str
    severity: Severity
    summary: str  # a format string: {value}, {detail}, {labels} and the names of labels
    look_at: str
    command: str
    above: float | None = None
    below: float | None = None
    good_at: float | None = None
    for_s: float = 0.0
    keep_s: float = 0.0  # a firing alert ends when its finding was good for so long
    labels: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()  # empty: as the routes say
    options: Mapping[str, object] = field(default_factory=dict)  # of the check
    groups_allowed: re.Pattern[str] | None = None  # patterns that group ids contain
    groups_denied: re.Pattern[str] | None = None

    @property
    def has_patterns(self) -> bool:
        return self.groups_allowed is not None or self.groups_denied is not None

    def admits(self, finding: Finding) -> bool:
        group = dict(finding.labels).get("group", "")
        if self.groups_allowed is not None and self.groups_allowed.search(group) is None:
            return False
        return self.groups_denied is None or self.groups_denied.search(group) is None

    def is_violated(self, value: float, *, is_firing: bool) -> bool:
        if is_firing and self.good_at is not None:
            return value > self.good_at if self.above is not None else value < self.good_at
        if self.above is not None:
            return value > self.above
        assert self.below is not None
        return value < self.below

    def summary_of(self, finding: Finding) -> str:
        return wording.visible(self.summary.format_map(self._values(finding)))

    def command_for(self, finding: Finding) -> str:
        return wording.command(self.command, self._values(finding))

    def _values(self, finding: Finding) -> Values:
        names = {**self.labels, **dict(finding.words), **dict(finding.labels)}
        labels = " ".join(f"{name}={value}" for name, value in finding.labels)
        return Values(names, value=number_text(finding.value), detail=finding.detail, labels=labels)


class Values(dict[str, str]):
    """Names in braces that a finding does not have stay as they are."""

    def __init__(self, names: Mapping[str, str], **more: str) -> None:
        super().__init__({**names, **more})

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


def number_text(value: float) -> str:
    if not math.isfinite(value) or abs(value) >= NUMBER_MAX:
        return f"{value:g}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def labels_of(**names: object) -> Labels:
    return tuple(sorted((name, str(value)) for name, value in names.items()))


def check_rule(rule: Rule) -> None:
    """ValueError says what is wrong with a rule."""
    if (rule.above is None) == (rule.below is None):
        raise ValueError(f"rule {rule.name}: give either above or below")
    if rule.good_at is not None:
        limit = rule.above if rule.above is not None else rule.below
        assert limit is not None
        is_behind = rule.good_at > limit if rule.above is not None else rule.good_at < limit
        if is_behind:
            side = "above" if rule.above is not None else "below"
            raise ValueError(f"rule {rule.name}: good_at {rule.good_at:g} violates {side} {limit:g} itself")
    nothing = Finding(0.0)
    for name, text_for in (("summary", rule.summary_of), ("command", rule.command_for)):
        try:
            text_for(nothing)
        except (ValueError, IndexError, AttributeError, TypeError):
            raise ValueError(
                f"rule {rule.name}: {name} is no valid text: write {{value}}, {{detail}} or a label's name"
            ) from None

"""The states of alerts: one state for each rule and each object that violates it.

      inactive ── violated ──> pending ── for `for_s` ──> firing ── good for `keep_s` ──> resolved
                                  │                          ^                                │
                                  └── good ──> inactive      └───────── violated ─────────────┘

In: the findings of a rule and the time. Out: changes, for messages and the history. An object that is not
found any more is good, unless the check could not look at it: then its alert stays as it is.
Does not know: clocks, silences, targets.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from barnabas.monitor.alerts.rule import Finding, Labels, Rule

ALERTS_OF_RULE_MAX = 1_000  # more objects of one rule are counted, not tracked


class State(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert as others see it. Times are milliseconds since the epoch; 0 is unknown."""

    rule: str
    state: State
    severity: str
    labels: Labels
    value: float
    summary: str
    look_at: str
    command: str
    began_ms: int  # when the rule was violated first
    fired_ms: int = 0
    ended_ms: int = 0
    targets: tuple[str, ...] = ()
    subject: object = field(default=None, compare=False, repr=False)  # is not kept

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.rule, self.labels)

    @property
    def all_labels(self) -> dict[str, str]:
        return {**dict(self.labels), "alertname": self.rule, "severity": self.severity}

    def to_json(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "subject"}
        value = self.value if math.isfinite(self.value) else str(self.value)  # JSON has no infinity
        return {**found, "value": value, "labels": dict(self.labels), "fingerprint": self.fingerprint}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Alert:
        """KeyError, TypeError or ValueError if it has another form."""
        given = {name: value for name, value in found.items() if name != "fingerprint"}
        given["labels"] = tuple(sorted((str(name), str(value)) for name, value in given["labels"].items()))
        given["targets"] = tuple(given.get("targets", ()))
        given["value"] = float(given["value"])
        return Alert(**{**given, "state": State(given["state"])})


def fingerprint(rule: str, labels: Labels) -> str:
    return hashlib.sha256(json.dumps([rule, *labels]).encode()).hexdigest()[:16]


@dataclass(slots=True)
class Tracked:
    """The state of one alert. `good_since_ms` is None while the rule is violated."""

    began_ms: int
    finding: Finding
    fired_ms: int | None = None
    good_since_ms: int | None = None

    @property
    def is_firing(self) -> bool:
        return self.fired_ms is not None


class AlertBook:
    """All alerts of one evaluator."""

    def __init__(self) -> None:
        self._tracked: dict[str, dict[Labels, Tracked]] = {}
        self._rules: dict[str, Rule] = {}
        self.untracked: dict[str, int] = {}  # by rule: objects beyond the limit

    def observe(
        self, rule: Rule, findings: Iterable[Finding], now_ms: int, blind: Collection[Labels] = ()
    ) -> list[Alert]:
        """Take the findings of a rule. Returns the alerts that began to fire or ended. Objects with all
        labels of a `blind` place that are not found stay as they are: nobody could look at them."""
        self._rules[rule.name] = rule
        tracked = self._tracked.setdefault(rule.name, {})
        found = self._bounded(rule, tracked, findings)
        changes = []
        for labels, finding in found.items():
            state = tracked.get(labels)
            if rule.is_violated(finding.value, is_firing=state is not None and state.is_firing):
                if state is None:
                    state = tracked[labels] = Tracked(now_ms, finding)
                state.finding, state.good_since_ms = finding, None
                if not state.is_firing and now_ms - state.began_ms >= rule.for_s * 1000:
                    state.fired_ms = now_ms
                    changes.append(self._alert(rule, state, State.FIRING))
            elif state is not None:
                state.finding = finding
                changes += self._resolved_if_good(rule, tracked, labels, now_ms)
        for labels in [each for each in tracked if each not in found]:
            if not any(set(place) <= set(labels) for place in blind):
                changes += self._resolved_if_good(rule, tracked, labels, now_ms)
        return changes

    def _bounded(
        self, rule: Rule, tracked: Mapping[Labels, Tracked], findings: Iterable[Finding]
    ) -> dict[Labels, Finding]:
        """Findings of objects that are tracked or violate the rule."""
        found: dict[Labels, Finding] = {}
        new = untracked = 0
        for finding in findings:
            labels = tuple(sorted({**rule.labels, **dict(finding.labels)}.items()))
            if labels in tracked:
                found[labels] = finding
            elif not rule.is_violated(finding.value, is_firing=False):
                continue
            elif len(tracked) + new < ALERTS_OF_RULE_MAX:
                found[labels] = finding
                new += 1
            else:
                untracked += 1
        self.untracked[rule.name] = untracked
        return found

    def _resolved_if_good(
        self, rule: Rule, tracked: dict[Labels, Tracked], labels: Labels, now_ms: int
    ) -> list[Alert]:
        state = tracked[labels]
        if state.is_firing:
            if state.good_since_ms is None:
                state.good_since_ms = now_ms
            if now_ms - state.good_since_ms < rule.keep_s * 1000:
                return []
        del tracked[labels]
        return [self._alert(rule, state, State.RESOLVED, now_ms, labels)] if state.is_firing else []

    def drop_other_rules(self, rules: Sequence[Rule], now_ms: int) -> list[Alert]:
        """End the alerts of rules that the file does not have any more."""
        names = {rule.name for rule in rules}
        changes = []
        for name in [each for each in self._tracked if each not in names]:
            rule = self._rules[name]
            for labels, state in self._tracked.pop(name).items():
                if state.is_firing:
                    changes.append(self._alert(rule, state, State.RESOLVED, now_ms, labels))
            self.untracked.pop(name, None)
        return changes

    def restore(self, rules: Mapping[str, Rule], alerts: Iterable[Alert]) -> None:
        """Continue with the alerts that another evaluator left behind. Those of unknown rules are dropped."""
        for alert in alerts:
            rule = rules.get(alert.rule)
            if rule is None or alert.state is not State.FIRING:
                continue
            self._rules[rule.name] = rule
            state = Tracked(alert.began_ms, Finding(alert.value, alert.labels), alert.fired_ms)
            self._tracked.setdefault(rule.name, {})[alert.labels] = state

    def alerts(self) -> list[Alert]:
        """All pending and firing alerts."""
        return [
            self._alert(
                self._rules[name], state, State.FIRING if state.is_firing else State.PENDING, 0, labels
            )
            for name, tracked in self._tracked.items()
            for labels, state in tracked.items()
        ]

    def _alert(
        self, rule: Rule, state: Tracked, shown: State, ended_ms: int = 0, labels: Labels | None = None
    ) -> Alert:
        finding = state.finding
        if labels is None:
            labels = tuple(sorted({**rule.labels, **dict(finding.labels)}.items()))
        return Alert(
            rule.name,
            shown,
            rule.severity,
            labels,
            finding.value,
            rule.summary_of(finding),
            rule.look_at,
            rule.command_for(finding),
            state.began_ms,
            state.fired_ms or 0,
            ended_ms,
            rule.targets,
            finding.subject,
        )

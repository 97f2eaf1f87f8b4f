"""Notices: which messages are due, to which target, about which alerts.

In: changes of alerts, silences, the time. Out: notices. Alerts with the same labels of `by` go to a target
in one message: the first after `wait_s` (others may follow at once), changes after `interval_s`, and a
firing alert again after `repeat_s`. Some targets end an alert by themselves if they do not hear of it again:
these are told more often. A target that fails is tried again with growing pauses; it holds up no other. Does
not know: how a target is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.monitor.alerts.rule import Labels
from barnabas.monitor.alerts.silences import Matcher, match_all
from barnabas.monitor.alerts.states import Alert, State

RETRY_MS, RETRY_MS_MAX = 5_000, 300_000
RESOLVED_MAX = 500  # ended alerts that wait for a message of one group; older ones are dropped first


@dataclass(frozen=True, slots=True)
class Grouping:
    by: tuple[str, ...] = ("cluster", "alertname")
    wait_s: float = 10.0
    interval_s: float = 300.0
    repeat_s: float = 14_400.0


@dataclass(frozen=True, slots=True)
class Route:
    """The first route whose matchers fit gives the targets, unless the rule names its own."""

    targets: tuple[str, ...]
    matchers: tuple[Matcher, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    target: str
    group: Labels
    firing: tuple[Alert, ...]
    resolved: tuple[Alert, ...]

    @property
    def alerts(self) -> tuple[Alert, ...]:
        return self.firing + self.resolved

    @property
    def status(self) -> str:
        return "firing" if self.firing else "resolved"


@dataclass(slots=True)
class Group:
    """Alerts of one message. `told` has the fingerprints of firing alerts that the target knows."""

    firing: dict[str, Alert] = field(default_factory=dict)
    resolved: dict[str, Alert] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    changed_ms: int | None = None  # the first change that is not told
    sent_ms: int | None = None
    failures: int = 0
    retry_ms: int = 0
    underway: frozenset[str] | None = None  # firing alerts of a message that is being sent
    doubted: frozenset[str] = frozenset()  # firing alerts that an evaluator was telling when it died


class Notices:
    def __init__(
        self, grouping: Grouping, routes: Sequence[Route], refreshed_s: Mapping[str, float] | None = None
    ) -> None:
        """`refreshed_s`: how often some targets hear of what still fires."""
        self.grouping = grouping
        self.refreshed_s = dict(refreshed_s or {})
        self._routes = tuple(routes)
        self._groups: dict[tuple[str, Labels], Group] = {}

    def targets_of(self, alert: Alert) -> tuple[str, ...]:
        if alert.targets:
            return alert.targets
        labels = alert.all_labels
        for route in self._routes:
            if match_all(route.matchers, labels):
                return route.targets
        return ()

    def add(self, changes: Iterable[Alert], now_ms: int) -> None:
        for alert in changes:
            for _, group in self._groups_of(alert):
                self._change(group, alert, now_ms)

    def _groups_of(self, alert: Alert) -> Iterator[tuple[str, Group]]:
        """The group of the alert at each of its targets."""
        labels = alert.all_labels
        key = tuple((name, labels[name]) for name in self.grouping.by if name in labels)
        for target in self.targets_of(alert):
            yield target, self._groups.setdefault((target, key), Group())

    def _change(self, group: Group, alert: Alert, now_ms: int) -> None:
        mark = alert.fingerprint
        if alert.state is State.FIRING:
            group.resolved.pop(mark, None)
            group.firing[mark] = alert
        else:
            group.firing.pop(mark, None)
            if mark not in group.told and mark not in (group.underway or ()) and mark not in group.doubted:
                return  # nobody heard of it
            group.resolved[mark] = alert
            while len(group.resolved) > RESOLVED_MAX:
                group.resolved.pop(next(iter(group.resolved)))
        if group.changed_ms is None:
            group.changed_ms = now_ms

    def restore(
        self,
        alerts: Iterable[Alert],
        told: Mapping[str, Collection[str]],
        underway: Mapping[str, Collection[str]],
        sent_ms: int,
    ) -> None:
        """Continue after another evaluator. `alerts`: those that fire, and those that ended while some target
        still takes them for firing. `told`: what each target takes for firing. `underway`: what it may have
        heard of, too: it is told again of what fires, and of what ends."""
        ended = []
        for alert in alerts:
            if alert.state is State.FIRING:
                self.add([alert], 0)
            else:
                ended.append(alert)
        for alert in ended:
            for _, group in self._groups_of(alert):
                if alert.fingerprint not in group.firing:
                    group.resolved[alert.fingerprint] = alert
        for (target, _), group in self._groups.items():
            known = told.get(target, ())
            group.doubted = frozenset(underway.get(target, ()))
            # The target has heard of the end of the others.
            group.resolved = {
                mark: each for mark, each in group.resolved.items() if mark in known or mark in group.doubted
            }
            group.told = {mark for mark in (*group.firing, *group.resolved) if mark in known}
            if group.told:
                group.sent_ms = sent_ms
            if group.told >= group.firing.keys() and not group.resolved:
                group.changed_ms = None

    def due(self, now_ms: int, is_silent: Callable[[Alert], bool]) -> list[Notice]:
        """The messages to send now. Each must be answered with `sent` or `failed`."""
        found = []
        for (target, key), group in list(self._groups.items()):
            if group.underway is not None or now_ms < group.retry_ms:
                continue
            firing = [alert for alert in group.firing.values() if not is_silent(alert)]
            if not self._is_due(target, group, firing, now_ms):
                if not group.firing and not group.resolved:
                    del self._groups[target, key]
                continue
            if not firing and not group.resolved:
                continue
            group.underway = frozenset(alert.fingerprint for alert in firing)
            found.append(Notice(target, key, tuple(firing), tuple(group.resolved.values())))
        return found

    def _is_due(self, target: str, group: Group, firing: Sequence[Alert], now_ms: int) -> bool:
        grouping = self.grouping
        refreshed_s = self.refreshed_s.get(target, grouping.repeat_s)
        is_new = any(alert.fingerprint not in group.told for alert in firing)
        if is_new or group.resolved:
            if group.sent_ms is not None:
                return now_ms - group.sent_ms >= min(grouping.interval_s, refreshed_s) * 1000
            return group.changed_ms is None or now_ms - group.changed_ms >= grouping.wait_s * 1000
        return bool(firing) and now_ms - (group.sent_ms or 0) >= refreshed_s * 1000

    def sent(self, notice: Notice, now_ms: int) -> None:
        group = self._groups[notice.target, notice.group]
        group.underway, group.failures, group.retry_ms = None, 0, 0
        group.sent_ms, group.changed_ms = now_ms, None
        # Targets still take silenced alerts for firing: they must hear of their end.
        group.told = {alert.fingerprint for alert in notice.firing} | (group.told & group.firing.keys())
        for alert in notice.resolved:
            group.resolved.pop(alert.fingerprint, None)
        if not group.firing and not group.resolved:
            del self._groups[notice.target, notice.group]

    def failed(self, notice: Notice, now_ms: int) -> None:
        group = self._groups[notice.target, notice.group]
        group.underway = None
        group.resolved = {
            mark: alert
            for mark, alert in group.resolved.items()
            if mark in group.told or mark in group.doubted
        }
        group.failures += 1
        longest_ms = min(RETRY_MS_MAX, int(self.refreshed_s.get(notice.target, RETRY_MS_MAX) * 1000))
        group.retry_ms = now_ms + min(RETRY_MS << min(group.failures - 1, 10), longest_ms)

"""The words of a message: a title, and lines for each alert with what to look at and the command to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.alerts.wording import visible

ALERTS_SHOWN_MAX = 20


def title(notice: Notice) -> str:
    group = visible(" ".join(value for _, value in notice.group))
    if notice.firing:
        worst = min((each.severity for each in notice.firing), key=("critical", "warning", "info").index)
        count = len(notice.firing)
        return f"[{worst.upper()}{f' x{count}' if count > 1 else ''}] {group}"
    return f"[RESOLVED] {group}"


def lines(notice: Notice) -> Iterator[str]:
    yield from alert_lines(notice.firing)
    yield from alert_lines(notice.resolved)


def alert_lines(alerts: Iterable[Alert]) -> Iterator[str]:
    found = list(alerts)
    for alert in found[:ALERTS_SHOWN_MAX]:
        if alert.state is State.RESOLVED:
            yield f"resolved at {at(alert.ended_ms)}: {alert.summary}"
            yield ""
            continue
        yield f"{alert.severity}, since {at(alert.began_ms)}: {alert.summary}"
        yield f"  look at: {alert.look_at}"
        yield f"  run:     {alert.command}"
        yield ""
    if len(found) > ALERTS_SHOWN_MAX:
        yield f"and {len(found) - ALERTS_SHOWN_MAX} more"


def at(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(time_ms: int) -> str:
    """RFC 3339; a time that is unknown is the year 1, as in Alertmanager."""
    if time_ms <= 0:
        return "0001-01-01T00:00:00Z"
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )

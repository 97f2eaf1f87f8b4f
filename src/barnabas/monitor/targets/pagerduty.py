"""PagerDuty's events, version 2: one event for each alert; its fingerprint ends what it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.targets.target import post
from barnabas.monitor.targets.texts import iso

URL = "https://events.pagerduty.com/v2/enqueue"
SEVERITIES = {"critical": "critical", "warning": "warning", "info": "info"}
SUMMARY_CHARS_MAX = 1024


@dataclass(frozen=True, slots=True)
class PagerDuty:
    name: str
    routing_key: str = field(repr=False)
    url: str = URL

    def deliver(self, notice: Notice) -> None:
        for alert in notice.alerts:
            post(self.url, self.event(alert))

    def event(self, alert: Alert) -> dict[str, Any]:
        event: dict[str, Any] = {"routing_key": self.routing_key, "dedup_key": alert.fingerprint}
        if alert.state is State.RESOLVED:
            return {**event, "event_action": "resolve"}
        labels = alert.all_labels
        payload = {
            "summary": alert.summary[:SUMMARY_CHARS_MAX],
            "source": labels.get("cluster", "barnabas"),
            "severity": SEVERITIES[alert.severity],
            "timestamp": iso(alert.fired_ms),
            "component": labels.get("topic") or labels.get("group") or labels.get("broker") or "kafka",
            "class": alert.rule,
            "custom_details": {**labels, "look at": alert.look_at, "command": alert.command},
        }
        return {**event, "event_action": "trigger", "client": "Barnabas", "payload": payload}

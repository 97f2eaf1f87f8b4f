"""Webhooks: JSON in the form of Alertmanager's webhooks, version 4, for which receivers exist everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.targets.target import post
from barnabas.monitor.targets.texts import iso


@dataclass(frozen=True, slots=True)
class Webhook:
    name: str
    url: str = field(repr=False)
    external_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)

    def deliver(self, notice: Notice) -> None:
        post(self.url, body(notice, self.external_url), headers=self.headers, auth=self.auth)


def body(notice: Notice, external_url: str) -> dict[str, Any]:
    alerts = [alert_json(each, external_url) for each in notice.alerts]
    return {
        "version": "4",
        "groupKey": "{}:{" + ", ".join(f'{name}="{value}"' for name, value in notice.group) + "}",
        "truncatedAlerts": 0,
        "status": notice.status,
        "receiver": notice.target,
        "groupLabels": dict(notice.group),
        "commonLabels": shared([each["labels"] for each in alerts]),
        "commonAnnotations": shared([each["annotations"] for each in alerts]),
        "externalURL": external_url,
        "alerts": alerts,
    }


def alert_json(alert: Alert, external_url: str) -> dict[str, Any]:
    return {
        "status": "resolved" if alert.state is State.RESOLVED else "firing",
        "labels": alert.all_labels,
        "annotations": notes_of(alert),
        "startsAt": iso(alert.fired_ms),
        "endsAt": iso(alert.ended_ms),
        "generatorURL": external_url,
        "fingerprint": alert.fingerprint,
    }


def notes_of(alert: Alert) -> dict[str, str]:
    return {
        "summary": alert.summary,
        "look_at": alert.look_at,
        "command": alert.command,
        "value": f"{alert.value:g}",
    }


def shared(found: list[dict[str, str]]) -> dict[str, str]:
    """The entries that all have."""
    if not found:
        return {}
    return {name: value for name, value in found[0].items() if all(each.get(name) == value for each in found)}

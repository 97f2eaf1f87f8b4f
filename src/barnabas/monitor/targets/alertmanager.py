"""Alertmanager's API, version 2. It groups, silences and repeats by itself, so every notice goes to all of
its nodes; firing alerts are posted again before they end by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.targets.target import DeliveryFailed, post
from barnabas.monitor.targets.texts import iso
from barnabas.monitor.targets.webhook import notes_of

PATH = "/api/v2/alerts"


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A delivery has failed if no node accepted it: nodes tell each other."""

    name: str
    urls: tuple[str, ...]
    external_url: str = ""
    auth: tuple[str, str] | None = field(default=None, repr=False)

    def deliver(self, notice: Notice) -> None:
        body = [self.alert(each) for each in notice.alerts]
        failures = []
        for url in self.urls:
            try:
                post(url.rstrip("/") + PATH, body, auth=self.auth)
            except DeliveryFailed as error:
                failures.append(str(error))
        if len(failures) == len(self.urls):
            raise DeliveryFailed("; ".join(failures))

    def alert(self, alert: Alert) -> dict[str, Any]:
        found = {
            "labels": alert.all_labels,
            "annotations": notes_of(alert),
            "startsAt": iso(alert.fired_ms),
            "generatorURL": self.external_url,
        }
        if alert.state is State.RESOLVED:
            found["endsAt"] = iso(alert.ended_ms)
        return found

"""Alertmanager's API, version 2. It groups, silences and repeats by itself, so every notice goes to all of
its nodes. It ends an alert by itself at the time that the alert names: each post of a firing alert moves this
time, and the evaluator posts it again every `REFRESH_S`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.targets.target import DeliveryFailed, post
from barnabas.monitor.targets.texts import iso
from barnabas.monitor.targets.webhook import notes_of

PATH = "/api/v2/alerts"
REFRESH_S = 60.0
REFRESHES_MISSED_MAX = 4  # then an alert ends by itself: nobody evaluates it


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
        still_ms = int((time.time() + REFRESHES_MISSED_MAX * REFRESH_S) * 1000)
        return {
            "labels": alert.all_labels,
            "annotations": notes_of(alert),
            "startsAt": iso(alert.fired_ms),
            "endsAt": iso(alert.ended_ms if alert.state is State.RESOLVED else still_ms),
            "generatorURL": self.external_url,
        }

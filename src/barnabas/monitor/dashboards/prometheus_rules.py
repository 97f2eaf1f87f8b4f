"""Rules as Prometheus' YAML.

In: alerts and recordings, a dialect. Out: the text of a rules file. Texts are quoted as JSON quotes them,
which YAML reads. Does not know: files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from barnabas.monitor.dashboards.model import Alert, Recording, promql


def rules_file(alerts: Iterable[Alert], recordings: Iterable[Recording], dialect: str) -> str:
    lines = ["# Made by `barnabas dashboards export`.", "groups:"]
    lines += ["  - name: barnabas-recordings", "    rules:"]
    for recording in recordings:
        lines += [
            f"      - record: {recording.name}",
            f"        expr: {quoted(promql(recording.text, dialect))}",
        ]
    lines += ["  - name: barnabas-alerts", "    rules:"]
    for alert in alerts:
        lines += of_alert(alert, dialect)
    return "\n".join(lines) + "\n"


def of_alert(alert: Alert, dialect: str) -> Iterator[str]:
    yield f"      - alert: {alert.name}"
    yield f"        expr: {quoted(promql(alert.text, dialect))}"
    if alert.for_s:
        yield f"        for: {alert.for_s}s"
    yield "        labels:"
    yield f"          severity: {alert.severity}"
    yield "        annotations:"
    yield f"          summary: {quoted(promql(alert.summary, dialect))}"
    yield f"          description: {quoted(f'Look at {alert.look_at}. Run: {alert.command}')}"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

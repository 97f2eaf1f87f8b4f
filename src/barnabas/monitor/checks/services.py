"""Findings of services around the brokers: connectors that failed, alarms of the audit.

In: the JSON of their APIs. Out: findings. ValueError names an answer of another form. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.monitor.alerts.rule import Finding, labels_of

TRACE_CHARS_MAX = 200


def failed_connectors(found: Any, url: str) -> list[Finding]:
    """From `GET /connectors?expand=status` of Kafka Connect."""
    if not isinstance(found, Mapping):
        raise ValueError(f"{url} is not Kafka Connect: expected an object of connectors")
    findings = []
    for name, entry in found.items():
        try:
            status = entry["status"]
            states = [("connector", status["connector"])]
            states += [(f"task {each['id']}", each) for each in status["tasks"]]
            failed = [(what, each) for what, each in states if each["state"] == "FAILED"]
        except (KeyError, TypeError):
            raise ValueError(f"{url}: the status of connector {name} has another form") from None
        detail = "; ".join(f"{what} failed: {first_line(each.get('trace', ''))}" for what, each in failed)
        findings.append(Finding(len(failed), labels_of(connector=name, url=url), detail))
    return findings


def first_line(trace: str) -> str:
    return (trace.strip().splitlines() or ["no trace"])[0][:TRACE_CHARS_MAX]


def audit_alarms(found: Any, url: str) -> list[Finding]:
    """From `GET /alarms` of the audit's service."""
    try:
        return [
            Finding(
                1,
                labels_of(topic=each["topic"], tier=each["tier"], bucket=each["bucket_ms"], url=url),
                audit_text(each),
            )
            for each in found["alarms"]
        ]
    except (KeyError, TypeError):
        raise ValueError(f"{url} is not the audit's service: its alarms have another form") from None


def audit_text(alarm: Mapping[str, Any]) -> str:
    text = alarm.get("text")
    if isinstance(text, str) and text:
        return text
    return f"audit of {alarm['topic']}: tier {alarm['tier']} differs from the one before it"

"""Avro schemas of made-up rows, with hints for `avro_maker`, in few words."""

from __future__ import annotations

from typing import Any

T0_MS, T1_MS = 1_487_715_775_521, 1_519_273_364_600


def field(name: str, kind: str, **hints: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": kind, "arg.properties": hints} if hints else kind}


def times(name: str) -> dict[str, Any]:
    """Times that go on by one second with each row."""
    given = {
        "type": "long",
        "logicalType": "timestamp-millis",
        "arg.properties": {"iteration": {"start": 1_760_000_000_000, "step": 1000}},
    }
    return {"name": name, "type": given}


def counted(name: str, start: int = 1) -> dict[str, Any]:
    return field(name, "long", iteration={"start": start, "step": 1})


def between(name: str, kind: str, low: float, high: float) -> dict[str, Any]:
    return field(name, kind, range={"min": low, "max": high})


def record(name: str, *fields: Any, namespace: str = "ksql") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": namespace, "fields": list(fields)}


def chosen(name: str, *options: Any, kind: str = "string") -> dict[str, Any]:
    return field(name, kind, options=list(options))


def moments(name: str, step_ms: int) -> dict[str, Any]:
    """Timestamps that go on by a step with each row."""
    found = times(name)
    found["type"]["arg.properties"] = {"iteration": {"start": 1_760_000_000_000, "step": step_ms}}
    return found


def days(name: str) -> dict[str, Any]:
    """Dates of three years."""
    hints = {"range": {"min": 19_000, "max": 20_000}}
    return {"name": name, "type": {"type": "int", "logicalType": "date", "arg.properties": hints}}


def rows_of(made: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A record whose rows are some of these."""
    return {**made, "arg.properties": {"options": rows}}

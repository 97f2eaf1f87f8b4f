"""Offsets move while captured tables are quiet: with heartbeats, and without a record. Pure."""

from __future__ import annotations

import time
from typing import Any

from barnabas.connect.data import INT64, STRING, Column, Records, struct

VALUE = struct(name="io.debezium.connector.common.Heartbeat", version=1, ts_ms=INT64)
KEY = struct(name="io.debezium.connector.common.ServerNameKey", version=1, serverName=STRING)


def heartbeat(topic: str, server: str, position: tuple[dict[str, Any], dict[str, Any]]) -> Records:
    return Records.of(
        topic,
        Column.of([{"ts_ms": time.time_ns() // 1_000_000}], VALUE),
        Column.of([{"serverName": server}], KEY),
        positions=[position],
    )


def moved(position: tuple[dict[str, Any], dict[str, Any]]) -> Records:
    """A position without a record: the log was read to there, and had nothing that is captured."""
    return Records.of("", Column.nulls(0), positions=[position])

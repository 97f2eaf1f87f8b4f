"""Logical decoding messages (`pg_logical_emit_message`) as records of the topic `<prefix>.message`. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from barnabas.connect.connectors.debezium.envelope import TRANSACTION
from barnabas.connect.connectors.postgres_cdc.capture import SOURCE
from barnabas.connect.connectors.postgres_cdc.pgoutput import LogicalMessage
from barnabas.connect.data import BYTES, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Column, Records, struct

KEY = struct({"prefix": OPTIONAL_STRING}, name="io.debezium.connector.postgresql.MessageKey", version=1)
BLOCK = struct(
    {"prefix": OPTIONAL_STRING, "content": BYTES.as_optional()},
    name="io.debezium.connector.postgresql.Message",
    version=1,
)
VALUE = struct(
    {
        "op": STRING,
        "ts_ms": OPTIONAL_INT64,
        "source": SOURCE,
        "transaction": TRANSACTION,
        "message": BLOCK,
    },
    name="io.debezium.connector.postgresql.MessageValue",
    version=1,
)


def message_records(
    topic: str,
    message: LogicalMessage,
    source: Mapping[str, Any],
    position: tuple[dict[str, Any], dict[str, Any]],
    transaction: Mapping[str, Any] | None = None,
) -> Records:
    row = {
        "op": "m",
        "ts_ms": time.time_ns() // 1_000_000,
        "source": dict(source),
        "transaction": transaction,
        "message": {"prefix": message.prefix, "content": message.content},
    }
    return Records.of(
        topic, Column.of([row], VALUE), Column.of([{"prefix": message.prefix}], KEY), positions=[position]
    )

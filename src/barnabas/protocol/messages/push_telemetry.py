"""PushTelemetry: a client sends its metrics (KIP-714)."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import NULL_UUID, Bool, Bytes, Int8, Int16, Int32, Uuid


class PushTelemetryRequest(Message, key=72, versions="0", flexible="0+"):
    client_instance_id: Uuid = NULL_UUID
    subscription_id: Int32 = 0
    terminating: Bool = False
    compression_type: Int8 = 0
    metrics: Bytes = b""


class PushTelemetryResponse(Message, key=72, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0

"""GetTelemetrySubscriptions: which metrics a client should send (KIP-714)."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import NULL_UUID, Bool, Int8, Int16, Int32, String, Uuid


class GetTelemetrySubscriptionsRequest(Message, key=71, versions="0", flexible="0+"):
    client_instance_id: Uuid = NULL_UUID


class GetTelemetrySubscriptionsResponse(Message, key=71, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = NULL_UUID
    subscription_id: Int32 = 0
    accepted_compression_types: list[Int8] = []
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    requested_metrics: list[String] = []

"""Heartbeat: a member of a classic group says that it is alive."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, String


class HeartbeatRequest(Message, key=12, versions="0-4", flexible="4+"):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = since("3+", None)


class HeartbeatResponse(Message, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    error_code: Int16 = 0

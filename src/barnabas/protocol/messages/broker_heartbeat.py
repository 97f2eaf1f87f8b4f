"""BrokerHeartbeat: a broker tells the controller that it is alive, and asks to be unfenced or shut down."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.schema import tag
from barnabas.protocol.types import Bool, Int16, Int32, Int64, Uuid


class BrokerHeartbeatRequest(Message, key=63, versions="0-2", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64 = 0
    want_fence: Bool = False
    want_shut_down: Bool = False
    offline_log_dirs: list[Uuid] = tag(0, "1+", [])
    cordoned_log_dirs: list[Uuid] | None = tag(1, "2+", None)


class BrokerHeartbeatResponse(Message, key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool = False

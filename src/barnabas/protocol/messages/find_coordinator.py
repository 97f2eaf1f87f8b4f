"""FindCoordinator: which broker coordinates a group, a transaction or a share partition."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, String


class FindCoordinatorRequest(Message, key=10, versions="0-6", flexible="3+"):
    key: String = since("0-3", "")
    key_type: Int8 = since("1+", 0)
    coordinator_keys: list[String] = since("4+", [])


class FindCoordinatorResponse(Message, key=10, versions="0-6", flexible="3+"):
    class Coordinator(Struct):
        key: String = since("4+", "")
        node_id: Int32 = since("4+", 0)
        host: String = since("4+", "")
        port: Int32 = since("4+", 0)
        error_code: Int16 = since("4+", 0)
        error_message: String | None = since("4+", "", ignorable=True)

    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    error_code: Int16 = since("0-3", 0)
    error_message: String | None = since("1-3", "", ignorable=True)
    node_id: Int32 = since("0-3", 0)
    host: String = since("0-3", "")
    port: Int32 = since("0-3", 0)
    coordinators: list[Coordinator] = since("4+", [])

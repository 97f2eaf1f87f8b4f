"""SyncGroup: the leader of a classic group hands in the assignment, every member learns its own."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bytes, Int16, Int32, String


class SyncGroupRequest(Message, key=14, versions="0-5", flexible="4+"):
    class SyncGroupRequestAssignment(Struct):
        member_id: String = ""
        assignment: Bytes = b""

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = since("3+", None)
    protocol_type: String | None = since("5+", None, ignorable=True)
    protocol_name: String | None = since("5+", None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message, key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    error_code: Int16 = 0
    protocol_type: String | None = since("5+", None, ignorable=True)
    protocol_name: String | None = since("5+", None, ignorable=True)
    assignment: Bytes = b""

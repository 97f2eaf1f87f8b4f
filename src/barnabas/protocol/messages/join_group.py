"""JoinGroup: become a member of a classic group, and learn who leads it."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Bytes, Int16, Int32, String


class JoinGroupRequest(Message, key=11, versions="0-9", flexible="6+"):
    class JoinGroupRequestProtocol(Struct):
        name: String = ""
        metadata: Bytes = b""

    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Int32 = since("1+", -1, ignorable=True)
    member_id: String = ""
    group_instance_id: String | None = since("5+", None)
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: String | None = since("8+", None, ignorable=True)


class JoinGroupResponse(Message, key=11, versions="0-9", flexible="6+"):
    class JoinGroupResponseMember(Struct):
        member_id: String = ""
        group_instance_id: String | None = since("5+", None, ignorable=True)
        metadata: Bytes = b""

    throttle_time_ms: Int32 = since("2+", 0, ignorable=True)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: String | None = since("7+", None, ignorable=True)
    protocol_name: String | None = since("0+", "", nullable="7+")
    leader: String = ""
    skip_assignment: Bool = since("9+", False)
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []

"""LeaveGroup: members leave a classic group."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, String


class LeaveGroupRequest(Message, key=13, versions="0-5", flexible="4+"):
    class MemberIdentity(Struct):
        member_id: String = since("3+", "")
        group_instance_id: String | None = since("3+", None)
        reason: String | None = since("5+", None, ignorable=True)

    group_id: String = ""
    member_id: String = since("0-2", "")
    members: list[MemberIdentity] = since("3+", [])


class LeaveGroupResponse(Message, key=13, versions="0-5", flexible="4+"):
    class MemberResponse(Struct):
        member_id: String = since("3+", "")
        group_instance_id: String | None = since("3+", "")
        error_code: Int16 = since("3+", 0)

    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    error_code: Int16 = 0
    members: list[MemberResponse] = since("3+", [])

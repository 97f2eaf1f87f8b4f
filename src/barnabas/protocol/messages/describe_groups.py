"""DescribeGroups: state, members and assignments of classic groups."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Bytes, Int16, Int32, String


class DescribeGroupsRequest(Message, key=15, versions="0-6", flexible="5+"):
    groups: list[String] = []
    include_authorized_operations: Bool = since("3+", False)


class DescribeGroupsResponse(Message, key=15, versions="0-6", flexible="5+"):
    class DescribedGroup(Struct):
        class DescribedGroupMember(Struct):
            member_id: String = ""
            group_instance_id: String | None = since("4+", None, ignorable=True)
            client_id: String = ""
            client_host: String = ""
            member_metadata: Bytes = b""
            member_assignment: Bytes = b""

        error_code: Int16 = 0
        error_message: String | None = since("6+", None)
        group_id: String = ""
        group_state: String = ""
        protocol_type: String = ""
        protocol_data: String = ""
        members: list[DescribedGroupMember] = []
        authorized_operations: Int32 = since("3+", -(2**31))

    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    groups: list[DescribedGroup] = []

"""ListGroups: groups that a broker coordinates."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int16, Int32, String


class ListGroupsRequest(Message, key=16, versions="0-5", flexible="3+"):
    states_filter: list[String] = since("4+", [])
    types_filter: list[String] = since("5+", [])


class ListGroupsResponse(Message, key=16, versions="0-5", flexible="3+"):
    class ListedGroup(Struct):
        group_id: String = ""
        protocol_type: String = ""
        group_state: String = since("4+", "", ignorable=True)
        group_type: String = since("5+", "", ignorable=True)

    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    error_code: Int16 = 0
    groups: list[ListedGroup] = []

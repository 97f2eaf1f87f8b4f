"""DeleteGroups: remove empty groups and their offsets."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, String


class DeleteGroupsRequest(Message, key=42, versions="0-2", flexible="2+"):
    groups_names: list[String] = []


class DeleteGroupsResponse(Message, key=42, versions="0-2", flexible="2+"):
    class DeletableGroupResult(Struct):
        group_id: String = ""
        error_code: Int16 = 0

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []

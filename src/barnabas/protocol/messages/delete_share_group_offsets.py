"""DeleteShareGroupOffsets: remove the offsets of a share group."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, Uuid


class DeleteShareGroupOffsetsRequest(Message, key=92, versions="0", flexible="0+"):
    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: String = ""

    group_id: String = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponse(Message, key=92, versions="0", flexible="0+"):
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: String = ""
        topic_id: Uuid = NULL_UUID
        error_code: Int16 = 0
        error_message: String | None = None

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []

"""DeleteTopics: delete topics by name or id."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, Uuid


class DeleteTopicsRequest(Message, key=20, versions="1-6", flexible="4+"):
    class DeleteTopicState(Struct):
        name: String | None = since("6+", None)
        topic_id: Uuid = since("6+", NULL_UUID)

    topics: list[DeleteTopicState] = since("6+", [])
    topic_names: list[String] = since("0-5", [], ignorable=True)
    timeout_ms: Int32 = 0


class DeleteTopicsResponse(Message, key=20, versions="1-6", flexible="4+"):
    class DeletableTopicResult(Struct):
        name: String | None = since("0+", "", nullable="6+")
        topic_id: Uuid = since("6+", NULL_UUID, ignorable=True)
        error_code: Int16 = 0
        error_message: String | None = since("5+", None, ignorable=True)

    throttle_time_ms: Int32 = since("1+", 0, ignorable=True)
    responses: list[DeletableTopicResult] = []

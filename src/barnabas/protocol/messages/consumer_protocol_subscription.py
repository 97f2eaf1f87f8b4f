"""ConsumerProtocolSubscription: what a member of a classic consumer group subscribes to."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bytes, Int32, String


class ConsumerProtocolSubscription(Message, versions="0-3"):
    class TopicPartition(Struct):
        topic: String = since("1+", "")
        partitions: list[Int32] = since("1+", [])

    topics: list[String] = []
    user_data: Bytes | None = None
    owned_partitions: list[TopicPartition] = since("1+", [], ignorable=True)
    generation_id: Int32 = since("2+", -1, ignorable=True)
    rack_id: String | None = since("3+", None, ignorable=True)

"""ConsumerProtocolAssignment: what the leader of a classic consumer group assigns to a member."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bytes, Int32, String


class ConsumerProtocolAssignment(Message, versions="0-3"):
    class TopicPartition(Struct):
        topic: String = ""
        partitions: list[Int32] = []

    assigned_partitions: list[TopicPartition] = []
    user_data: Bytes | None = None

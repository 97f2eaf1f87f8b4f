"""CreatePartitions: add partitions to topics."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Bool, Int16, Int32, String


class CreatePartitionsRequest(Message, key=37, versions="0-3", flexible="2+"):
    class CreatePartitionsTopic(Struct):
        class CreatePartitionsAssignment(Struct):
            broker_ids: list[Int32] = []

        name: String = ""
        count: Int32 = 0
        assignments: list[CreatePartitionsAssignment] | None = []

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: Bool = False


class CreatePartitionsResponse(Message, key=37, versions="0-3", flexible="2+"):
    class CreatePartitionsTopicResult(Struct):
        name: String = ""
        error_code: Int16 = 0
        error_message: String | None = None

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []

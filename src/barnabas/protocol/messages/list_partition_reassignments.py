"""ListPartitionReassignments: partitions that are moving."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, String


class ListPartitionReassignmentsRequest(Message, key=46, versions="0", flexible="0+"):
    class ListPartitionReassignmentsTopics(Struct):
        name: String = ""
        partition_indexes: list[Int32] = []

    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


class ListPartitionReassignmentsResponse(Message, key=46, versions="0", flexible="0+"):
    class OngoingTopicReassignment(Struct):
        class OngoingPartitionReassignment(Struct):
            partition_index: Int32 = 0
            replicas: list[Int32] = []
            adding_replicas: list[Int32] = []
            removing_replicas: list[Int32] = []

        name: String = ""
        partitions: list[OngoingPartitionReassignment] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[OngoingTopicReassignment] = []

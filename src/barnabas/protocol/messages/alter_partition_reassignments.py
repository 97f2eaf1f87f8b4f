"""AlterPartitionReassignments: start or cancel moving partitions to other replicas."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int16, Int32, String


class AlterPartitionReassignmentsRequest(Message, key=45, versions="0-1", flexible="0+"):
    class ReassignableTopic(Struct):
        class ReassignablePartition(Struct):
            partition_index: Int32 = 0
            replicas: list[Int32] | None = None

        name: String = ""
        partitions: list[ReassignablePartition] = []

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = since("1+", True)
    topics: list[ReassignableTopic] = []


class AlterPartitionReassignmentsResponse(Message, key=45, versions="0-1", flexible="0+"):
    class ReassignableTopicResponse(Struct):
        class ReassignablePartitionResponse(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = ""

        name: String = ""
        partitions: list[ReassignablePartitionResponse] = []

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = since("1+", True, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = ""
    responses: list[ReassignableTopicResponse] = []

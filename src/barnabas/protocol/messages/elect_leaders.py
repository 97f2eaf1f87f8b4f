"""ElectLeaders: elect the preferred leader, or any, for partitions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Int8, Int16, Int32, String


class ElectLeadersRequest(Message, key=43, versions="0-2", flexible="2+"):
    class TopicPartitions(Struct):
        topic: String = ""
        partitions: list[Int32] = []

    election_type: Int8 = since("1+", 0)
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: Int32 = 60000


class ElectLeadersResponse(Message, key=43, versions="0-2", flexible="2+"):
    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: Int32 = 0
            error_code: Int16 = 0
            error_message: String | None = ""

        topic: String = ""
        partition_result: list[PartitionResult] = []

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since("1+", 0)
    replica_election_results: list[ReplicaElectionResult] = []

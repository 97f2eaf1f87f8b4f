"""AlterReplicaLogDirs: move replicas to another log directory of the same broker."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.types import Int16, Int32, String


class AlterReplicaLogDirsRequest(Message, key=34, versions="1-2", flexible="2+"):
    class AlterReplicaLogDir(Struct):
        class AlterReplicaLogDirTopic(Struct):
            name: String = ""
            partitions: list[Int32] = []

        path: String = ""
        topics: list[AlterReplicaLogDirTopic] = []

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirsResponse(Message, key=34, versions="1-2", flexible="2+"):
    class AlterReplicaLogDirTopicResult(Struct):
        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: Int32 = 0
            error_code: Int16 = 0

        topic_name: String = ""
        partitions: list[AlterReplicaLogDirPartitionResult] = []

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []

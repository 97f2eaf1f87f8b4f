"""DescribeLogDirs: log directories of a broker with the sizes of their replicas."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int16, Int32, Int64, String


class DescribeLogDirsRequest(Message, key=35, versions="1-5", flexible="2+"):
    class DescribableLogDirTopic(Struct):
        topic: String = ""
        partitions: list[Int32] = []

    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsResponse(Message, key=35, versions="1-5", flexible="2+"):
    class DescribeLogDirsResult(Struct):
        class DescribeLogDirsTopic(Struct):
            class DescribeLogDirsPartition(Struct):
                partition_index: Int32 = 0
                partition_size: Int64 = 0
                offset_lag: Int64 = 0
                is_future_key: Bool = False

            name: String = ""
            partitions: list[DescribeLogDirsPartition] = []

        error_code: Int16 = 0
        log_dir: String = ""
        topics: list[DescribeLogDirsTopic] = []
        total_bytes: Int64 = since("4+", -1, ignorable=True)
        usable_bytes: Int64 = since("4+", -1, ignorable=True)
        is_cordoned: Bool = since("5+", False, ignorable=True)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = since("3+", 0, ignorable=True)
    results: list[DescribeLogDirsResult] = []

"""DescribeLogDirs: what lies in each log directory, and how much room there is."""

from __future__ import annotations

from barnabas.broker.context import RequestContext
from barnabas.broker.needs import describe_cluster
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = Result.DescribeLogDirsTopic
Partition = Topic.DescribeLogDirsPartition
UNKNOWN_LAG = -1


@handles(DescribeLogDirsRequest, "1-5", needs=describe_cluster())
def describe_log_dirs(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    broker = context.broker
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    topics: dict[str, dict[str, list[Partition]]] = {each.path: {} for each in broker.log_dirs.dirs}
    logs = broker.log_dirs.logs
    for where, log in [*logs.items(), *broker.log_dirs.future_logs.items()]:
        if asked is None or where in asked:
            current = logs.get(where)
            row = Partition(partition_index=where.partition, partition_size=log.size_bytes)
            if log is not current:
                row.is_future_key = True
                row.offset_lag = current.end_offset - log.end_offset if current is not None else UNKNOWN_LAG
            topics[directory_of(log.directory)].setdefault(where.topic, []).append(row)
    results = []
    for each in broker.log_dirs.dirs:
        if each.failure is not None:
            results.append(Result(log_dir=each.absolute_path, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            continue
        try:
            total, usable = broker.log_dirs.context.disk.space(each.path)
        except OSError as error:
            broker.log_dirs.context.failure("look at", each.path, error)
            results.append(Result(log_dir=each.absolute_path, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            continue
        results.append(
            Result(
                log_dir=each.absolute_path,
                topics=[
                    Topic(name=name, partitions=partitions) for name, partitions in topics[each.path].items()
                ],
                total_bytes=total,
                usable_bytes=usable,
                is_cordoned=each.is_cordoned,
            )
        )
    return DescribeLogDirsResponse(results=results)


def directory_of(partition_folder: str) -> str:
    return partition_folder.rpartition("/")[0]

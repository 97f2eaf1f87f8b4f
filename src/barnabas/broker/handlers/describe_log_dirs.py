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


@handles(DescribeLogDirsRequest, "1-5", needs=describe_cluster())
def describe_log_dirs(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    broker = context.broker
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    topics: dict[str, dict[str, list[Partition]]] = {each.path: {} for each in broker.log_dirs.dirs}
    for partition in broker.partitions:
        if asked is None or (partition.topic, partition.index) in asked:
            here = topics[directory_of(partition.log.directory)].setdefault(partition.topic, [])
            here.append(Partition(partition_index=partition.index, partition_size=partition.log.size_bytes))
    results = []
    for each in broker.log_dirs.dirs:
        if each.failure is not None:
            results.append(Result(log_dir=each.path, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            continue
        total, usable = broker.log_dirs.context.disk.space(each.path)
        results.append(
            Result(
                log_dir=each.path,
                topics=[
                    Topic(name=name, partitions=partitions) for name, partitions in topics[each.path].items()
                ],
                total_bytes=total,
                usable_bytes=usable,
            )
        )
    return DescribeLogDirsResponse(results=results)


def directory_of(partition_folder: str) -> str:
    return partition_folder.rpartition("/")[0]

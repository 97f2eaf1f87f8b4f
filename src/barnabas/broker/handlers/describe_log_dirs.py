"""DescribeLogDirs: what lies in each log directory, and how much room there is."""

from __future__ import annotations

from barnabas.broker.context import RequestContext
from barnabas.broker.needs import describe_cluster
from barnabas.broker.routes import handles
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
    topics: dict[str, dict[str, list[Partition]]] = {str(path): {} for path in broker.log_dirs.paths}
    for partition in broker.partitions:
        if asked is None or (partition.topic, partition.index) in asked:
            here = topics[directory_of(partition.log.directory)].setdefault(partition.topic, [])
            here.append(Partition(partition_index=partition.index, partition_size=partition.log.size_bytes))
    results = []
    for path, found in topics.items():
        total, usable = broker.log_dirs.space(path)
        results.append(
            Result(
                log_dir=path,
                topics=[Topic(name=name, partitions=partitions) for name, partitions in found.items()],
                total_bytes=total,
                usable_bytes=usable,
            )
        )
    return DescribeLogDirsResponse(results=results)


def directory_of(partition_folder: str) -> str:
    return partition_folder.rpartition("/")[0]

"""DescribeLogDirs: the partitions in each log dir, and the size and free space of its file system."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_cluster
from barnabas.broker.api.routes import handles
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.runtime.pieces import Steps

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.storage.dirs.log_dir import LogDir
    from barnabas.storage.logs.context import LogContext

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = Result.DescribeLogDirsTopic
Partition = Topic.DescribeLogDirsPartition
UNKNOWN_LAG = -1


@handles(DescribeLogDirsRequest, "1-5", needs=describe_cluster)
def describe_log_dirs(
    request: DescribeLogDirsRequest, context: RequestContext
) -> Awaitable[DescribeLogDirsResponse]:
    return describe(request, context.broker)


async def describe(request: DescribeLogDirsRequest, broker: Broker) -> DescribeLogDirsResponse:
    dirs = broker.log_dirs.dirs
    spaces = await broker.threads.reads.run(space_of, dirs, broker.log_dirs.context)
    topics = await broker.pieces.run(logs_of(request, broker))
    results = []
    for each, space in zip(dirs, spaces, strict=True):
        if each.failure is not None or space is None:
            results.append(Result(log_dir=each.absolute_path, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            continue
        results.append(
            Result(
                log_dir=each.absolute_path,
                topics=[
                    Topic(name=name, partitions=partitions) for name, partitions in topics[each.path].items()
                ],
                total_bytes=space[0],
                usable_bytes=space[1],
                is_cordoned=each.is_cordoned,
            )
        )
    return DescribeLogDirsResponse(results=results)


def space_of(dirs: list[LogDir], context: LogContext) -> list[tuple[int, int] | None]:
    """The size and free space of each dir's file system. Runs in a thread, since a remote or hanging file
    system may block."""
    found: list[tuple[int, int] | None] = []
    for each in dirs:
        try:
            found.append(context.disk.space(each.path) if each.failure is None else None)
        except OSError as error:
            context.failure("look at", each.path, error)
            found.append(None)
    return found


def logs_of(request: DescribeLogDirsRequest, broker: Broker) -> Steps[dict[str, dict[str, list[Partition]]]]:
    """The partitions in each dir, by topic."""
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = set()
        for topic in request.topics:
            for index in topic.partitions:
                asked.add((topic.topic, index))
                yield
    topics: dict[str, dict[str, list[Partition]]] = {each.path: {} for each in broker.log_dirs.dirs}
    logs = broker.log_dirs.logs
    for topic_partition, log in [*logs.items(), *broker.log_dirs.future_logs.items()]:
        yield
        if asked is None or topic_partition in asked:
            current = logs.get(topic_partition)
            row = Partition(partition_index=topic_partition.partition, partition_size=log.size_bytes)
            if log is not current:
                row.is_future_key = True
                row.offset_lag = current.end_offset - log.end_offset if current is not None else UNKNOWN_LAG
            topics[directory_of(log.directory)].setdefault(topic_partition.topic, []).append(row)
    return topics


def directory_of(partition_folder: str) -> str:
    return partition_folder.rpartition("/")[0]

"""AlterReplicaLogDirs: moves partitions to another log dir of this broker while they are in use."""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import alter_cluster
from barnabas.broker.api.routes import handles
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from barnabas.storage.files.names import TopicPartition

Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
Result = Topic.AlterReplicaLogDirPartitionResult


@handles(AlterReplicaLogDirsRequest, "1-2", needs=alter_cluster)
def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> Awaitable[AlterReplicaLogDirsResponse]:
    return context.broker.pieces.run(alter(request, context))


def alter(request: AlterReplicaLogDirsRequest, context: RequestContext) -> Steps[AlterReplicaLogDirsResponse]:
    wanted: dict[TopicPartition, str] = {}  # the last dir counts for a partition that is named twice
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                wanted[TopicPartition(topic.name, index)] = directory.path
                yield
    topics: dict[str, Topic] = {}
    for topic_partition, path in wanted.items():
        yield
        code = ErrorCode.NONE
        try:
            context.broker.moves.alter(topic_partition, path)
        except KafkaError as error:
            code = error.code
        topic_result = topics.setdefault(
            topic_partition.topic, Topic(topic_name=topic_partition.topic, partitions=[])
        )
        topic_result.partitions.append(Result(partition_index=topic_partition.partition, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))

"""AssignReplicasToDirs: brokers with several log directories report where their replicas are (KIP-858).

In: the request, the image. Out: PartitionChangeRecords with the replica's directory, and a result for each
partition. A replica in an offline directory leaves the ISR and cannot lead.
Does not know: why a replica is in its directory.
"""

from __future__ import annotations

from barnabas.controller import leadership
from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.metadata.partitions import PartitionRegistration, is_online
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage
from barnabas.metadata.versions import DIRECTORY_ASSIGNMENT
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import PartitionChangeRecord
from barnabas.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

Directory = AssignReplicasToDirsResponse.DirectoryData
Topic = Directory.TopicData
Partition = Topic.PartitionData


@InSteps
def assign_replicas_to_dirs(
    context: Context, request: AssignReplicasToDirsRequest
) -> Steps[Decision[AssignReplicasToDirsResponse]]:
    if context.level < DIRECTORY_ASSIGNMENT:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    context.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[Message] = []
    directories = []
    for directory in request.directories:
        topics = []
        for requested in directory.topics:
            topic = context.image.topics.by_id.get(requested.topic_id)
            partitions = []
            for partition in requested.partitions:
                number = partition.partition_index
                yield
                try:
                    record = _assign(context, topic, number, request.broker_id, directory.id)
                except KafkaError as error:
                    partitions.append(Partition(partition_index=number, error_code=error.code))
                    continue
                if record is not None:
                    records.append(record)
                partitions.append(Partition(partition_index=number))
            topics.append(Topic(topic_id=requested.topic_id, partitions=partitions))
        directories.append(Directory(id=directory.id, topics=topics))
    return Decision(AssignReplicasToDirsResponse(directories=directories), records)


def _assign(
    context: Context, topic: TopicImage | None, number: int, broker_id: int, directory_id: bytes
) -> PartitionChangeRecord | None:
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(number)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if partition.directory_of(broker_id) == directory_id:
        return None
    moved = _with_directory(partition, broker_id, directory_id)
    isr = partition.isr
    if not is_online(directory_id, context.image.cluster.brokers[broker_id].log_dirs):
        isr = tuple(replica for replica in isr if replica != broker_id)
    rules = leadership.rules_for(context, topic, context.is_active)
    record = leadership.change(moved, topic.id, number, isr, rules)
    if record is None:
        record = PartitionChangeRecord(partition_id=number, topic_id=topic.id)
    record.directories = list(moved.directories)
    return record


def _with_directory(
    partition: PartitionRegistration, broker_id: int, directory_id: bytes
) -> PartitionRegistration:
    directories = list(partition.directories)
    directories[partition.replicas.index(broker_id)] = directory_id
    return partition._replace(directories=tuple(directories))

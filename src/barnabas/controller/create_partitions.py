"""CreatePartitions: adds partitions to topics; existing ones stay where they are.

In: the request, the image. Out: PartitionRecords for the new partitions, and a result per topic.
Does not know: authorization, which keys move to other partitions.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

from barnabas.controller.context import RECORDS_PER_DECISION_MAX, Context
from barnabas.controller.create_topics import (
    PARTITIONS_PER_STEP,
    assigned_partition,
    bad_assignment,
    usable_brokers,
)
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.placement import placement
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Result = CreatePartitionsResponse.CreatePartitionsTopicResult
Topic = CreatePartitionsRequest.CreatePartitionsTopic

# For these Kafka sends the error code without a message.
WITHOUT_MESSAGE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_SERVER_ERROR)


@InSteps
def create_partitions(
    context: Context, request: CreatePartitionsRequest
) -> Steps[Decision[CreatePartitionsResponse]]:
    times_named = Counter(topic.name for topic in request.topics)
    results = [
        Result(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.")
        for name, times in times_named.items()
        if times > 1
    ]
    records: list[Message] = []
    for topic in request.topics:
        if times_named[topic.name] > 1:
            continue
        try:
            records.extend((yield from _grow(context, topic, RECORDS_PER_DECISION_MAX - len(records))))
        except KafkaError as error:
            message = None if error.code in WITHOUT_MESSAGE else error.message
            results.append(Result(name=topic.name, error_code=error.code, error_message=message))
        else:
            results.append(Result(name=topic.name, error_message=None))
    reply = CreatePartitionsResponse(results=results)
    return Decision(reply, [] if request.validate_only else records)


def _grow(context: Context, request: Topic, room: int) -> Steps[list[Message]]:
    topic = context.image.topics.by_name.get(request.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if request.count == count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if request.count < count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {count} partition(s); "
            f"{request.count} would not be an increase.",
        )
    additional = request.count - count
    if additional > room:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka has no better error for too many
    context.charge_mutations(additional)
    added = yield from _added(context, topic, request, additional)
    level = context.level
    records: list[Message] = []
    for index, partition in enumerate(added):
        records.append(partition.to_record(topic.id, count + index, level))
        if not index % PARTITIONS_PER_STEP:
            yield
    return records


def _added(
    context: Context, topic: TopicImage, request: Topic, additional: int
) -> Steps[list[PartitionRegistration]]:
    first = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    if request.assignments is not None:
        if len(request.assignments) != additional:
            raise bad_assignment(
                f"Attempted to add {additional} additional partition(s), but only {len(request.assignments)} "
                "assignment(s) were specified."
            )
        added = []
        for index, assignment in enumerate(request.assignments):
            added.append(assigned_partition(context, first + index, tuple(assignment.broker_ids), factor))
            if not index % PARTITIONS_PER_STEP:
                yield
        return added
    added = []
    for replicas in islice(placement(factor, usable_brokers(context), context.rng), additional):
        if not len(added) % PARTITIONS_PER_STEP:
            yield
        partition = context.new_partition(replicas)
        if partition is None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently fenced or in "
                "controlled shutdown.",
            )
        added.append(partition)
    return added

"""AlterPartitionReassignments: move partitions to other brokers, or cancel such moves.

In: the wanted replicas, or none to cancel. Out: PartitionChangeRecords. New replicas are added first; the old
ones are removed when every new one is in sync (`partition_change`, after AlterPartition). Throttles, which
are configs, limit the speed.
Does not know: authorization, how replicas copy data.
"""

from __future__ import annotations

from typing import Any

from barnabas.controller.context import RECORDS_PER_DECISION_MAX, Context
from barnabas.controller.create_topics import check_assignment
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.leadership import rules_for
from barnabas.controller.partition_change import Election, Wanted, build
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import PartitionChangeRecord
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

# For these Kafka sends the error code without a message.
WITHOUT_MESSAGE = (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.UNKNOWN_SERVER_ERROR)

Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
Partition = Topic.ReassignablePartitionResponse


@InSteps
def alter_partition_reassignments(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> Steps[Decision[AlterPartitionReassignmentsResponse]]:
    if not request.topics:
        return Decision(AlterPartitionReassignmentsResponse())
    records: list[Message] = []
    topics = []
    for requested_topic in request.topics:
        results = []
        for requested in requested_topic.partitions:
            result = Partition(partition_index=requested.partition_index, error_message=None)
            yield
            try:
                if not request.allow_replication_factor_change:
                    _check_factor(
                        context, requested_topic.name, requested.partition_index, requested.replicas
                    )
                record = _alter(context, requested_topic.name, requested.partition_index, requested.replicas)
                if record is not None:
                    if len(records) >= RECORDS_PER_DECISION_MAX:
                        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                    records.append(record)
            except KafkaError as error:
                result.error_code = error.code
                result.error_message = None if error.code in WITHOUT_MESSAGE else error.message
            results.append(result)
        topics.append(Topic(name=requested_topic.name, partitions=results))
    reply = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=topics,
    )
    return Decision(reply, records)


def refused_reassignments(request: Any, error: KafkaError) -> AlterPartitionReassignmentsResponse:
    """One error for the whole request."""
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)


def _check_factor(context: Context, name: str, number: int, replicas: list[int] | None) -> None:
    """Raise KafkaError if the replication factor would change, when the client forbids it (KIP-860)."""
    partition = context.image.topics.partition(name, number)
    if partition is None or replicas is None:
        return
    now = {*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas)
    if len(now) != len(replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(now)} to {len(replicas)}",
        )


def _alter(
    context: Context, name: str, number: int, replicas: list[int] | None
) -> PartitionChangeRecord | None:
    topic = context.image.topics.by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(number)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{number}.")
    if replicas is None:
        return _cancel(context, topic, number, partition)
    return _move(context, topic, number, partition, tuple(replicas))


def _move(
    context: Context,
    topic: TopicImage,
    number: int,
    partition: PartitionRegistration,
    target: tuple[int, ...],
) -> PartitionChangeRecord | None:
    check_assignment(context, target, None)
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    wanted = Wanted(replicas=(*target, *removing), removing=removing or None, adding=adding or None)
    rules = rules_for(context, topic, context.is_active, unclean_allowed=False, uses_topic_setting=False)
    return build(partition, topic.id, number, wanted, rules)


def _cancel(
    context: Context, topic: TopicImage, number: int, partition: PartitionRegistration
) -> PartitionChangeRecord | None:
    if not partition.removing_replicas and not partition.adding_replicas:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    replicas = tuple(each for each in partition.replicas if each not in partition.adding_replicas)
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    isr = tuple(each for each in partition.isr if each in replicas)
    unclean_allowed = context.unclean_election_allowed(topic.name)
    if not isr:
        if not unclean_allowed:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{number} because it would require "
                "an unclean leader election.",
            )
        isr = replicas[:1]
    wanted = Wanted(
        isr=isr,
        replicas=replicas,
        removing=(),
        adding=(),
        election=Election.UNCLEAN if unclean_allowed else Election.ONLINE,
    )
    return build(partition, topic.id, number, wanted, rules_for(context, topic, context.is_active))

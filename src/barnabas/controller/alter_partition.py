"""AlterPartition: a partition's leader asks to change the ISR, because a follower caught up or fell behind
(KIP-497).

In: the leader's request, the image. Out: PartitionChangeRecords and the partition after them. A request with
an old epoch gets the error for it. The ISR takes no broker that is fenced, shuts down, or has restarted since
it caught up.
Does not know: how leaders decide that a follower is in sync.
"""

from __future__ import annotations

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.leadership import rules_for
from barnabas.controller.partition_change import Wanted, build
from barnabas.metadata.partitions import NO_LEADER_CHANGE, RECOVERED, RECOVERING, PartitionRegistration
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

RequestedPartition = AlterPartitionRequest.TopicData.PartitionData
State = RequestedPartition.BrokerState
Topic = AlterPartitionResponse.TopicData
Partition = Topic.PartitionData
ANY_EPOCH = -1


@InSteps
def alter_partition(
    context: Context, request: AlterPartitionRequest
) -> Steps[Decision[AlterPartitionResponse]]:
    context.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[Message] = []
    topics = []
    for requested_topic in request.topics:
        topic = context.image.topics.by_id.get(requested_topic.topic_id)
        results = []
        for requested in requested_topic.partitions:
            number = requested.partition_index
            yield
            try:
                if topic is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                before = topic.partitions.get(number)
                if before is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                isr = requested_isr(requested)
                check(context, request.broker_id, before, requested, isr)
                rules = rules_for(context, topic, context.is_active)
                wanted = Wanted(
                    isr=tuple(state.broker_id for state in isr),
                    recovery_state=requested.leader_recovery_state,
                )
                record = build(before, topic.id, number, wanted, rules)
                after = before
                if record is not None:
                    records.append(record)
                    after = before.merge(record)
                    if record.leader not in (NO_LEADER_CHANGE, request.broker_id):
                        # this change has completed a reassignment
                        raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)
                results.append(result_of(number, after))
            except KafkaError as error:
                results.append(Partition(partition_index=number, error_code=error.code))
        topics.append(Topic(topic_id=requested_topic.topic_id, partitions=results))
    return Decision(AlterPartitionResponse(topics=topics), records)


def requested_isr(requested: RequestedPartition) -> list[State]:
    """The requested ISR. Version 2 of the request has no broker epochs."""
    return requested.new_isr_with_epochs or [
        State(broker_id=broker, broker_epoch=ANY_EPOCH) for broker in requested.new_isr
    ]


def result_of(number: int, partition: PartitionRegistration) -> Partition:
    return Partition(
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def check(
    context: Context,
    broker_id: int,
    partition: PartitionRegistration,
    requested: RequestedPartition,
    isr: list[State],
) -> None:
    """Kafka's order of the checks: brokers act on the first error."""
    if (
        requested.leader_epoch > partition.leader_epoch
        or requested.partition_epoch > partition.partition_epoch
    ):
        raise KafkaError(ErrorCode.NOT_CONTROLLER)  # it has state that this controller never decided
    if requested.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if requested.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    ids = [state.broker_id for state in isr]
    if (
        not ids
        or len(set(ids)) != len(ids)
        or not set(ids) <= set(partition.replicas)
        or partition.leader not in ids
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    recovering = requested.leader_recovery_state == RECOVERING
    if recovering and (len(ids) > 1 or partition.leader_recovery_state == RECOVERED):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not all(is_eligible(context, state) for state in isr):
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)


def is_eligible(context: Context, state: State) -> bool:
    broker = context.image.cluster.brokers.get(state.broker_id)
    return broker is not None and broker.is_active and state.broker_epoch in (ANY_EPOCH, broker.epoch)

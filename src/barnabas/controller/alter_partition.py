"""AlterPartition: a leader has seen a follower catch up, or fall behind, and asks for another ISR (KIP-497).

In: the request of a partition's leader, the image. Out: PartitionChangeRecords and what the partition is
after them. Who asks with an old epoch learns it; brokers that are fenced, leave, or live another life than
the one that caught up are not let in.
Does not know: how leaders judge their followers.
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

Asked = AlterPartitionRequest.TopicData.PartitionData
State = Asked.BrokerState
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
    for asked_topic in request.topics:
        topic = context.image.topics.by_id.get(asked_topic.topic_id)
        answers = []
        for asked in asked_topic.partitions:
            number = asked.partition_index
            yield
            try:
                if topic is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                before = topic.partitions.get(number)
                if before is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                isr = in_life(asked)
                check(context, request.broker_id, before, asked, isr)
                rules = rules_for(context, topic, context.is_active)
                wanted = Wanted(
                    isr=tuple(state.broker_id for state in isr), recovery_state=asked.leader_recovery_state
                )
                record = build(before, topic.id, number, wanted, rules)
                after = before
                if record is not None:
                    records.append(record)
                    after = before.merge(record)
                    if record.leader not in (NO_LEADER_CHANGE, request.broker_id):
                        raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)  # a reassignment is complete by this
                answers.append(told(number, after))
            except KafkaError as error:
                answers.append(Partition(partition_index=number, error_code=error.code))
        topics.append(Topic(topic_id=asked_topic.topic_id, partitions=answers))
    return Decision(AlterPartitionResponse(topics=topics), records)


def in_life(asked: Asked) -> list[State]:
    """The wanted ISR; version 2 of the request does not tell in which life its brokers are."""
    return asked.new_isr_with_epochs or [
        State(broker_id=broker, broker_epoch=ANY_EPOCH) for broker in asked.new_isr
    ]


def told(number: int, partition: PartitionRegistration) -> Partition:
    return Partition(
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def check(
    context: Context, broker_id: int, partition: PartitionRegistration, asked: Asked, isr: list[State]
) -> None:
    """The order of these checks is Kafka's: brokers act on the first one that fails."""
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)  # it knows of what this controller never decided
    if asked.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if asked.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    ids = [state.broker_id for state in isr]
    if (
        not ids
        or len(set(ids)) != len(ids)
        or not set(ids) <= set(partition.replicas)
        or partition.leader not in ids
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    recovering = asked.leader_recovery_state == RECOVERING
    if recovering and (len(ids) > 1 or partition.leader_recovery_state == RECOVERED):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not all(is_eligible(context, state) for state in isr):
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)


def is_eligible(context: Context, state: State) -> bool:
    broker = context.image.cluster.brokers.get(state.broker_id)
    return broker is not None and broker.is_active and state.broker_epoch in (ANY_EPOCH, broker.epoch)

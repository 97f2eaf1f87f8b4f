"""ListOffsets: the first, last or timed offset of partitions that this broker leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.needs import describe_topics
from barnabas.broker.partition import Partition
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
CONSUMER = -1
DEBUGGER = -2
LEADER_EPOCHS_SINCE = 4
NOT_AVAILABLE_SINCE = 5
READ_COMMITTED = 1

Asked = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Answer = Topic.ListOffsetsPartitionResponse


@handles(ListOffsetsRequest, "1-11", needs=describe_topics("topics.name"))
def list_offsets(
    request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    timed = any(partition.timestamp >= 0 for topic in request.topics for partition in topic.partitions)
    return in_thread(request, context) if timed else answer(request, context, context.version)


async def in_thread(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """A lookup by time reads and unpacks batches: not on the loop."""
    return await context.broker.threads.run(answer, request, context, context.version)


def answer(request: ListOffsetsRequest, context: RequestContext, version: int) -> ListOffsetsResponse:
    seen = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    topics = []
    for topic in request.topics:
        answers = []
        for asked in {each.partition_index: each for each in topic.partitions}.values():
            try:
                if seen[topic.name, asked.partition_index] > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"{topic.name}-{asked.partition_index} is named twice"
                    )
                if version < SINCE.get(asked.timestamp, 0) or asked.timestamp < EARLIEST_PENDING_UPLOAD:
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                partition = context.broker.partitions.leader(topic.name, asked.partition_index)
                partition.check_epoch_strictly(asked.current_leader_epoch)
                answers.append(one_partition(partition, asked, request.isolation_level, request.replica_id))
            except KafkaError as error:
                code = error.code
                if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < NOT_AVAILABLE_SINCE:
                    code = ErrorCode.LEADER_NOT_AVAILABLE
                answers.append(Answer(partition_index=asked.partition_index, error_code=code))
        if version < LEADER_EPOCHS_SINCE:
            for each in answers:
                each.leader_epoch = -1
        topics.append(Topic(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def one_partition(partition: Partition, asked: Asked, isolation_level: int, replica_id: int) -> Answer:
    log = partition.log
    if replica_id == CONSUMER:
        limit = (
            partition.last_stable_offset if isolation_level == READ_COMMITTED else partition.high_watermark
        )
    elif replica_id == DEBUGGER:
        limit = log.end_offset
    else:
        limit = log.end_offset
    index = asked.partition_index
    if asked.timestamp == LATEST:
        if replica_id == CONSUMER and partition.high_watermark < partition.state.epoch_start_offset:
            # A new leader that does not know yet what was committed: an older answer may have been larger.
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return Answer(partition_index=index, offset=limit, leader_epoch=partition.leader_epoch)
    if asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        return Answer(
            partition_index=index, offset=log.log_start_offset, leader_epoch=partition.earliest_epoch()
        )
    if asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return Answer(partition_index=index, offset=-1)
    found = (
        log.max_timestamp_offset()
        if asked.timestamp == MAX_TIMESTAMP
        else log.offset_for_timestamp(asked.timestamp)
    )
    if found is None or found.offset >= limit:
        return Answer(partition_index=index)
    return Answer(
        partition_index=index, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
    )

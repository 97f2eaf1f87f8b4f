"""DeleteRecords: moves the log start offset of a partition forward, which deletes the records below it.

Retention removes the files later. The response has the low watermark: the smallest log start offset of all
replicas on active brokers. Followers learn the new log start offset with their fetches; the response waits
for them, up to the request's timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, each
from barnabas.broker.api.routes import handles
from barnabas.broker.partitions.partition import Partition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.runtime.pieces import Steps
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Result = Topic.DeleteRecordsPartitionResult
Waiting = tuple[Partition, int, Result]
"""A partition, the log start offset that all replicas should reach, and its result in the response."""


@handles(DeleteRecordsRequest, "0-2", needs=each(TOPIC, Operation.DELETE, "topics.name", "topics"))
def delete_records(
    request: DeleteRecordsRequest, context: RequestContext
) -> Awaitable[DeleteRecordsResponse]:
    return delete(request, context.broker)


async def delete(request: DeleteRecordsRequest, broker: Broker) -> DeleteRecordsResponse:
    waiting: list[Waiting] = []
    response = await broker.pieces.run(advance_starts(request, broker, waiting))
    return await wait_for_followers(response, waiting, request.timeout_ms, broker) if waiting else response


def advance_starts(
    request: DeleteRecordsRequest, broker: Broker, waiting: list[Waiting]
) -> Steps[DeleteRecordsResponse]:
    topics: dict[str, dict[int, Result]] = {}
    for topic in request.topics:
        results = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            index = asked.partition_index
            try:
                partition = broker.partitions.leader(topic.name, index)
                start = delete_before(partition, asked.offset)
                low_watermark = low_watermark_of(partition, broker)
                results[index] = Result(partition_index=index, low_watermark=low_watermark)
                if low_watermark < start:
                    waiting.append((partition, start, results[index]))
            except KafkaError as error:
                results[index] = Result(
                    partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code
                )
            yield
    return DeleteRecordsResponse(
        topics=[
            Topic(name=name, partitions=list(results.values())) for name, results in topics.items() if results
        ]
    )


async def wait_for_followers(
    response: DeleteRecordsResponse, waiting: list[Waiting], timeout_ms: int, broker: Broker
) -> DeleteRecordsResponse:
    """Return the response when followers have reached the log start offsets, or the timeout is over."""
    moved = asyncio.Event()

    def wake(partition: Partition) -> None:
        moved.set()

    partitions = [partition for partition, _, _ in waiting]
    for partition in partitions:
        partition.wait_for_followers_start(wake)
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            while waiting:
                waiting = [each for each in waiting if not is_finished(each, broker)]
                if waiting:
                    await moved.wait()
                    moved.clear()
    except TimeoutError:
        for _, _, result in waiting:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
    finally:
        for partition in partitions:
            partition.leave_followers_start(wake)
    return response


def is_finished(waiting: Waiting, broker: Broker) -> bool:
    """Whether the wait for this partition is over; updates its result."""
    partition, start, result = waiting
    if not partition.is_leader:
        result.error_code, result.low_watermark = ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LOW_WATERMARK
        return True
    result.low_watermark = low_watermark_of(partition, broker)
    return result.low_watermark >= start


def low_watermark_of(partition: Partition, broker: Broker) -> int:
    """The smallest log start offset of all replicas. Replicas on inactive brokers do not count."""
    is_active = broker.image.cluster.is_active
    starts = [
        follower.log_start_offset
        for replica, follower in partition.state.followers.items()
        if is_active(replica)
    ]
    return min(partition.log.log_start_offset, *starts) if starts else partition.log.log_start_offset


def delete_before(partition: Partition, offset: int) -> int:
    """Delete records below `offset` here. Out: the log start offset that followers should reach."""
    if partition.is_internal:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"the internal topic {partition.topic} keeps its records",
        )
    log = partition.log
    if not log.settings.delete:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{partition} is compacted: cleanup.policy lacks delete",
        )
    high_watermark = partition.high_watermark
    start = high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= start <= high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} has records up to offset {high_watermark}, not {start}",
        )
    if log.advance_log_start(start):
        partition.wake_followers()
    return start

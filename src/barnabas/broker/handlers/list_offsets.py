"""ListOffsets: the first offset, the last, or that of a timestamp, of partitions that this broker leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, each
from barnabas.broker.api.routes import handles
from barnabas.broker.partitions.partition import Partition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.runtime.pieces import Steps, at_once
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

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
LEADER_EPOCHS_SINCE = 4
NOT_AVAILABLE_SINCE = 5
READ_COMMITTED = 1

RequestedPartition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
Topic = ListOffsetsResponse.ListOffsetsTopicResponse
PartitionResponse = Topic.ListOffsetsPartitionResponse


AT_ONCE_MAX = 64  # partitions; more are done in pieces


class Lookup(NamedTuple):
    """A timestamp whose offset must be looked up in files, and the result to fill in."""

    log: Log
    timestamp: int
    limit: int  # offsets from here on are not returned
    result: PartitionResponse


@handles(ListOffsetsRequest, "1-11", needs=each(TOPIC, Operation.DESCRIBE, "topics.name", "topics"))
def list_offsets(
    request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    lookups: list[Lookup] = []
    steps = build_response(request, context, lookups)
    if sum(len(topic.partitions) for topic in request.topics) > AT_ONCE_MAX:
        return in_pieces(steps, lookups, context)
    response = at_once(steps)
    return with_lookups(response, lookups, context) if lookups else response


async def in_pieces(
    steps: Steps[ListOffsetsResponse], lookups: list[Lookup], context: RequestContext
) -> ListOffsetsResponse:
    response = await context.broker.pieces.run(steps)
    return await with_lookups(response, lookups, context) if lookups else response


async def with_lookups(
    response: ListOffsetsResponse, lookups: list[Lookup], context: RequestContext
) -> ListOffsetsResponse:
    """Look up timestamps in a thread, since that reads indexes and decompresses a batch."""
    names_epochs = context.version >= LEADER_EPOCHS_SINCE
    await context.broker.threads.reads.run(look_up, lookups, names_epochs)
    return response


def look_up(lookups: list[Lookup], names_epochs: bool) -> None:
    for log, timestamp, limit, found in lookups:
        try:
            place = (
                log.max_timestamp_offset()
                if timestamp == MAX_TIMESTAMP
                else log.offset_for_timestamp(timestamp)
            )
        except KafkaError as error:
            found.error_code = error.code
            continue
        if place is not None and place.offset < limit:
            found.timestamp, found.offset = place.timestamp, place.offset
            if names_epochs:
                found.leader_epoch = place.leader_epoch


def build_response(
    request: ListOffsetsRequest, context: RequestContext, lookups: list[Lookup]
) -> Steps[ListOffsetsResponse]:
    """Build the response, and collect timestamps to look up in files. Only the loop may read the rest."""
    version = context.version
    seen: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for asked in topic.partitions:
            seen[topic.name, asked.partition_index] += 1
            yield
    topics = []
    for topic in request.topics:
        results = []
        for asked in {part.partition_index: part for part in topic.partitions}.values():
            try:
                if seen[topic.name, asked.partition_index] > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"{topic.name}-{asked.partition_index} is named twice"
                    )
                if version < SINCE.get(asked.timestamp, 0) or asked.timestamp < EARLIEST_PENDING_UPLOAD:
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                partition = context.broker.partitions.leader(topic.name, asked.partition_index)
                partition.check_epoch_strictly(asked.current_leader_epoch)
                results.append(
                    one_partition(partition, asked, request.isolation_level, request.replica_id, lookups)
                )
            except KafkaError as error:
                code = error.code
                if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < NOT_AVAILABLE_SINCE:
                    code = ErrorCode.LEADER_NOT_AVAILABLE
                results.append(PartitionResponse(partition_index=asked.partition_index, error_code=code))
            yield
        if version < LEADER_EPOCHS_SINCE:
            for result in results:
                result.leader_epoch = -1
        topics.append(Topic(name=topic.name, partitions=results))
    return ListOffsetsResponse(topics=topics)


def one_partition(
    partition: Partition,
    asked: RequestedPartition,
    isolation_level: int,
    replica_id: int,
    lookups: list[Lookup],
) -> PartitionResponse:
    log = partition.log
    if replica_id == CONSUMER:
        limit = (
            partition.last_stable_offset if isolation_level == READ_COMMITTED else partition.high_watermark
        )
    else:
        limit = log.end_offset
    index = asked.partition_index
    if asked.timestamp == LATEST:
        if replica_id == CONSUMER and partition.high_watermark < partition.state.epoch_start_offset:
            # A new leader does not know yet what is committed: an earlier response may have been larger.
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return PartitionResponse(partition_index=index, offset=limit, leader_epoch=partition.leader_epoch)
    if asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        return PartitionResponse(
            partition_index=index, offset=log.log_start_offset, leader_epoch=partition.earliest_epoch()
        )
    if asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return PartitionResponse(partition_index=index, offset=-1)
    found = PartitionResponse(partition_index=index)
    lookups.append(Lookup(log, asked.timestamp, limit, found))
    return found

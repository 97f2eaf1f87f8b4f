"""The rules of the five requests, for one share partition: which are refused, and what is written for others.

In: the item of a request, the state that is known, the metadata. Out: the partition's result, and the value
of a record if one is needed; KafkaError for a refusal. The order of the checks is Apache Kafka's, so that the
same request gets the same error.
Does not know: the shard, the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from barnabas.shares.state.apis import Item
from barnabas.shares.state.batches import NO_START_OFFSET, StateBatch
from barnabas.shares.state.partition_state import NO_EPOCH, ShareState, initial_snapshot
from barnabas.shares.state.records import NO_COUNT, Entry, Snapshot, Update, batches_of

InitializeResult = InitializeShareGroupStateResponse.InitializeStateResult.PartitionResult
ReadResult = ReadShareGroupStateResponse.ReadStateResult.PartitionResult
WriteResult = WriteShareGroupStateResponse.WriteStateResult.PartitionResult
DeleteResult = DeleteShareGroupStateResponse.DeleteStateResult.PartitionResult
SummaryResult = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult.PartitionResult


class Circumstances(NamedTuple):
    image: MetadataImage
    now_ms: int
    updates_per_snapshot: int


class Decided(NamedTuple):
    """The result of a partition, and the record that makes it true."""

    result: Any
    entry: Entry | None = None


Decide = Callable[[Item, ShareState | None, Circumstances], Decided]


def initialize(item: Item, known: ShareState | None, at: Circumstances) -> Decided:
    """Begin the state of a partition. A repeated request of the same epoch changes nothing: it may arrive
    after members have read."""
    key, data = item
    check_partition(key.partition)
    check_state_epoch(known, data.state_epoch)
    check_exists(item, at.image)
    if known is not None and data.start_offset == NO_START_OFFSET and data.state_epoch == known.state_epoch:
        return Decided(InitializeResult(partition=key.partition))
    value = initial_snapshot(known, data.state_epoch, data.start_offset, at.now_ms)
    return Decided(InitializeResult(partition=key.partition), Entry(key, value))


def read(item: Item, known: ShareState | None, at: Circumstances) -> Decided:
    """Read the state. A leader that is newer than the coordinator knows fences those before it: its epoch is
    written before it gets the response."""
    key, data = item
    if known is None:
        raise refusal("Read operation on uninitialized share partition not allowed.")
    check_leader_epoch(known, data.leader_epoch)
    check_exists(item, at.image)
    batch_type = ReadResult.StateBatch
    result = ReadResult(
        partition=key.partition,
        state_epoch=known.state_epoch,
        start_offset=known.start_offset,
        state_batches=[
            batch_type(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in known.batches.ranges
        ],
    )
    if data.leader_epoch in (NO_EPOCH, known.leader_epoch_max):
        return Decided(result)
    value = next_value(known, known.start_offset, known.delivery_complete_count, [], data.leader_epoch, at)
    return Decided(result, Entry(key, value))


def write(item: Item, known: ShareState | None, at: Circumstances) -> Decided:
    key, data = item
    if known is None:
        raise refusal("Write operation on uninitialized share partition not allowed.")
    check_leader_epoch(known, data.leader_epoch)
    check_state_epoch(known, data.state_epoch)
    check_exists(item, at.image)
    batches = batches_of(data.state_batches)
    for batch in batches:
        if batch.first_offset > batch.last_offset:
            raise refusal(f"The state batch {batch.first_offset} to {batch.last_offset} has no offsets.")
    value = next_value(
        known, data.start_offset, data.delivery_complete_count, batches, known.leader_epoch, at
    )
    return Decided(WriteResult(partition=key.partition), Entry(key, value))


def delete(item: Item, known: ShareState | None, at: Circumstances) -> Decided:
    key = item.key
    check_partition(key.partition)
    check_exists(item, at.image)
    result = DeleteResult(partition=key.partition)
    return Decided(result) if known is None else Decided(result, Entry(key, None))


def read_summary(item: Item, known: ShareState | None, at: Circumstances) -> Decided:
    """Read the start offset; of a share partition without state too, since groups ask before they start."""
    key = item.key
    check_partition(key.partition)
    check_exists(item, at.image)
    if known is None:
        return Decided(
            SummaryResult(
                partition=key.partition, start_offset=NO_START_OFFSET, delivery_complete_count=NO_COUNT
            )
        )
    return Decided(
        SummaryResult(
            partition=key.partition,
            state_epoch=known.state_epoch,
            leader_epoch=known.leader_epoch,
            start_offset=known.start_offset,
            delivery_complete_count=known.delivery_complete_count,
        )
    )


def next_value(
    known: ShareState,
    start_offset: int,
    complete_count: int,
    batches: list[StateBatch],
    leader_epoch: int,
    at: Circumstances,
) -> Snapshot | Update:
    """An update, or a snapshot if there are enough updates since the last one."""
    if known.updates >= at.updates_per_snapshot:
        return known.next_snapshot(start_offset, complete_count, batches, leader_epoch, at.now_ms)
    return known.next_update(start_offset, complete_count, batches, leader_epoch)


# -- checks --------------------------------------------------------------------------------------------------


def refusal(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_partition(partition: int) -> None:
    if partition < 0:
        raise refusal("The partition id cannot be a negative number.")


def check_leader_epoch(known: ShareState, leader_epoch: int) -> None:
    if leader_epoch != NO_EPOCH and known.leader_epoch_max > leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


def check_state_epoch(known: ShareState | None, state_epoch: int) -> None:
    if state_epoch != NO_EPOCH and known is not None and known.state_epoch_max > state_epoch:
        raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)


def check_exists(item: Item, image: MetadataImage) -> None:
    topic = image.topics.by_id.get(item.key.topic_id)
    if topic is None or item.key.partition >= len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


DECIDE: dict[type[Message], Decide] = {
    InitializeShareGroupStateRequest: initialize,
    ReadShareGroupStateRequest: read,
    WriteShareGroupStateRequest: write,
    DeleteShareGroupStateRequest: delete,
    ReadShareGroupStateSummaryRequest: read_summary,
}

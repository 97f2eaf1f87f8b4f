"""The part of a fetch response for one partition: records from an offset on, within the limits.

In: partitions with offsets and limits. Out: `PartitionData`, with slices of the log that are not read yet.
The first partition with records sends at least one whole batch, however large; the others stay within the
limits (KIP-74). Does not know: fetch sessions, waiting, connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition

Asked = FetchRequest.FetchTopic.FetchPartition
PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
READ_COMMITTED = 1
EMPTY = b""


def nothing_now(partition: Partition) -> PartitionData:
    """No records, as if other partitions had filled the response: the client fetches again."""
    return PartitionData(
        partition_index=partition.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        records=EMPTY,
    )


def read_partition(
    partition: Partition,
    asked: Asked,
    bytes_max: int,
    isolation_level: int,
    *,
    at_least_one: bool,
    is_follower: bool = False,
) -> PartitionData:
    """Read one partition. Raises the KafkaError for the response. A follower gets uncommitted records too."""
    partition.check_epoch(asked.current_leader_epoch)
    log = partition.log
    high_watermark = partition.high_watermark
    offset = asked.fetch_offset
    stable = partition.last_stable_offset
    data = PartitionData(
        partition_index=partition.index,
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        records=EMPTY,
    )
    diverging = divergence(partition, asked)
    if diverging is not None:
        data.diverging_epoch = diverging
        return data
    if is_follower:
        upper = log.written_offset
    elif isolation_level == READ_COMMITTED:
        upper, data.aborted_transactions = stable, []
    else:
        upper = high_watermark
    if not log.log_start_offset <= offset <= log.end_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if offset >= upper or (bytes_max <= 0 and not at_least_one):
        return data
    found = log.read(offset, bytes_max, upper, at_least_one=at_least_one)
    if len(found):
        data.records = found
        if isolation_level == READ_COMMITTED and not is_follower:
            data.aborted_transactions = [
                PartitionData.AbortedTransaction(
                    producer_id=aborted.producer_id, first_offset=aborted.first_offset
                )
                for aborted in log.aborted_transactions(offset, found.next_offset)
            ]
    return data


def divergence(partition: Partition, asked: Asked) -> PartitionData.EpochEndOffset | None:
    """The epoch and end offset at which the reader's log diverges from this one; None if it does not."""
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.epoch_end(asked.last_fetched_epoch)
    if epoch < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return PartitionData.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


NOT_KNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
USUAL_ERRORS = frozenset(
    {
        *NOT_KNOWN,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
"""Apache Kafka counts a fetch that ends with one of them, but not as failed."""
"""The topic or partition does not exist, so a fetch cannot wait for it."""


def refused(index: int, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error.code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=[] if error.code in NOT_KNOWN else None,
        records=EMPTY,
    )

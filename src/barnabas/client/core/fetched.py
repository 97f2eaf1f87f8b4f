"""What a fetch brought: records out of batches, aborted transactions and markers left out.

In: one partition's part of a FetchResponse. Out: records from a position on, and the position after them.
Does not know: connections, leaders, what happens to the records.
"""

from typing import NamedTuple

from barnabas.client.core.fetching import PartitionData
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.records.batch import BatchHeader, TimestampType, headers, validate
from barnabas.records.crc32c import Buffer
from barnabas.records.record import Headers, iter_records

ABORT_MARKER = 0


class ConsumerRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers


class DamagedBatch(KafkaError):
    """A batch that cannot be read; `next_offset` is where one may go on behind it."""

    def __init__(self, where: TopicPartition, base_offset: int, next_offset: int, cause: KafkaError) -> None:
        text = f"offsets {base_offset} to {next_offset - 1} of {where} cannot be read: {cause.message}"
        super().__init__(cause.code, text)
        self.where = where
        self.next_offset = next_offset


def read_partition(
    where: TopicPartition, data: PartitionData, position: int, *, read_committed: bool
) -> tuple[list[ConsumerRecord], int]:
    """Records at or behind `position` that a consumer should see, and the position to fetch from next."""
    found: list[ConsumerRecord] = []
    if not data.records:
        return found, position
    buffer = data.records
    aborted = Aborted(data) if read_committed else None
    for start, header in headers(buffer):
        if header.last_offset < position:
            continue
        try:
            validate(buffer, start)
            hidden = aborted is not None and aborted.hides(header, buffer, start)
            if not header.is_control and not hidden:
                found += [
                    ConsumerRecord(
                        *where,
                        record.offset,
                        header.partition_leader_epoch,
                        record.timestamp,
                        header.timestamp_type,
                        record.key,
                        record.value,
                        record.headers,
                    )
                    for record in iter_records(buffer, position=start)
                    if record.offset >= position
                ]
        except KafkaError as error:
            if found:
                return found, position  # the error comes again, first, with the next fetch
            raise DamagedBatch(where, header.base_offset, header.next_offset, error) from error
        position = header.next_offset
    return found, position


class Aborted:
    """The transactions that a fetch answer says were aborted, followed batch by batch."""

    def __init__(self, data: PartitionData) -> None:
        transactions = data.aborted_transactions or []
        self._to_come = sorted((each.first_offset, each.producer_id) for each in transactions)
        self._active: set[int] = set()

    def hides(self, header: BatchHeader, buffer: Buffer, start: int) -> bool:
        while self._to_come and self._to_come[0][0] <= header.last_offset:
            self._active.add(self._to_come.pop(0)[1])
        if header.is_control:
            key = next(iter_records(buffer, position=start)).key or b""
            if int.from_bytes(key[2:4], "big") == ABORT_MARKER:
                self._active.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._active

"""The state of one producer on a partition: its epoch, its last batches, its open transaction.

`producers` compares and changes the fields.
Does not know: other producers, the log, which changes are allowed.
"""

from collections import deque
from typing import NamedTuple

from barnabas.records.batch import INT32_MAX, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

BATCHES_REMEMBERED = 5  # as many as an idempotent producer may have in flight
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1


class BatchMetadata(NamedTuple):
    """One appended batch: enough to recognise a duplicate and to send the same response again."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & INT32_MAX

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    aborted: bool


class ProducerState:
    """The state of one producer id. The newest batch is the last. Only batches of the current epoch are
    kept."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_OFFSET,
        batch: BatchMetadata | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_REMEMBERED)
        self.next_sequence = (
            0  # invariant: one above the last sequence of the newest batch, 0 without batches
        )
        if batch is not None:
            self.batches.append(batch)
            self.next_sequence = (batch.last_sequence + 1) & INT32_MAX

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def __repr__(self) -> str:
        return (
            f"ProducerState(producer_id={self.producer_id}, epoch={self.producer_epoch},"
            f" coordinator_epoch={self.coordinator_epoch}, last_timestamp={self.last_timestamp},"
            f" txn_first_offset={self.txn_first_offset}, batches={list(self.batches)})"
        )

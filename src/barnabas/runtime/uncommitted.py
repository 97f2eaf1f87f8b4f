"""The end of the metadata log that may not be committed yet, decoded: it becomes image when it is.

In: batches as they were appended, by the leader or from it. Out: the delta and image of those that are
committed; what would be the image if all were; the voters that a batch names. Batches that a new leader does
not have are dropped again.
Does not know: the file, who leads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import RegisterBrokerRecord
from barnabas.records.batch import BatchHeader
from barnabas.records.control import read_control
from barnabas.records.record import iter_records


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[Message]  # none in a control batch
    controls: Sequence[tuple[int, Message]] = ()  # with their offsets


def read_batch(data: bytes, position: int, header: BatchHeader) -> Batch:
    """A batch of the log, decoded."""
    records: list[Message] = []
    controls: list[tuple[int, Message]] = []
    if header.is_control:
        controls = [
            (control.offset, control.content)
            for control in read_control(data, position=position)
            if isinstance(control.content, Message)
        ]
    else:
        records = [serde.decode(record.value or b"") for record in iter_records(data, position=position)]
    return Batch(
        header.base_offset,
        header.next_offset,
        header.partition_leader_epoch,
        header.max_timestamp,
        records,
        controls,
    )


class Uncommitted:
    """Invariant: batches follow each other in the log, and the first begins where the image ends."""

    def __init__(self, transactions: TransactionFilter, registered_at: dict[int, int]) -> None:
        self.batches: deque[Batch] = deque()
        self.transactions = transactions  # as of the committed image
        self.registered_at = registered_at  # broker -> offset of its registration

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)

    def truncate(self, offset: int) -> None:
        while self.batches and self.batches[-1].end_offset > offset:
            self.batches.pop()

    def commit(self, image: MetadataImage, high_watermark: int) -> tuple[MetadataDelta, MetadataImage] | None:
        """The image with all that is below the high watermark; None when that is nothing new."""
        delta = MetadataDelta(image)
        last: Batch | None = None
        while self.batches and self.batches[0].end_offset <= high_watermark:
            last = self.batches.popleft()
            self._replay(last, delta, self.transactions)
        if last is None:
            return None
        return delta, delta.apply(Provenance(last.end_offset - 1, last.epoch, last.timestamp_ms))

    def take_all(self, image: MetadataImage) -> tuple[MetadataDelta, MetadataImage, Sequence[Batch]]:
        """The image as a new leader sees it: with all that is there, which it will commit with its own first
        records. What is uncommitted is the caller's from now on."""
        taken, self.batches = self.batches, deque()
        delta = MetadataDelta(image)
        self.transactions = self.transactions.copy()
        for batch in taken:
            self._replay(batch, delta, self.transactions)
        at = image.provenance
        if taken:
            at = Provenance(taken[-1].end_offset - 1, taken[-1].epoch, taken[-1].timestamp_ms)
        return delta, delta.apply(at), taken

    def _replay(self, batch: Batch, delta: MetadataDelta, transactions: TransactionFilter) -> None:
        for index, record in enumerate(batch.records):
            if type(record) is RegisterBrokerRecord:
                self.registered_at[record.broker_id] = batch.base_offset + index
        delta.replay_all(transactions.pass_on(batch.records))

"""The tail of the metadata log that may not be committed yet, decoded; it becomes part of the image on
commit.

In: batches, as this leader appended or as this follower fetched them. Out: the delta and the image when
batches are committed; the image as it would be if all were. A truncation drops batches that a new leader does
not have.
Does not know: the file, who leads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import RegisterBrokerRecord
from barnabas.records.batch import BatchHeader
from barnabas.records.control import read_control
from barnabas.records.record import iter_records

RECORDS_PER_STEP = 16
Replayed = tuple[MetadataDelta, TransactionFilter]  # the changes, and the transactions open after them


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    end_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[Message]  # empty in a control batch
    controls: Sequence[tuple[int, Message]] = ()  # with their offsets


def read_batch(data: bytes, position: int, header: BatchHeader) -> Batch:
    """Decode a batch of the log."""
    return at_once(read_in_steps(data, position, header))


def read_in_steps(data: bytes, position: int, header: BatchHeader) -> Steps[Batch]:
    records: list[Message] = []
    controls: list[tuple[int, Message]] = []
    if header.is_control:
        controls = [
            (control.offset, control.content)
            for control in read_control(data, position=position)
            if isinstance(control.content, Message)
        ]
    else:
        for record in iter_records(data, position=position):
            records.append(serde.decode(record.value or b""))
            if not len(records) % RECORDS_PER_STEP:
                yield
    return Batch(
        header.base_offset,
        header.next_offset,
        header.partition_leader_epoch,
        header.max_timestamp,
        records,
        controls,
    )


class Uncommitted:
    """Invariant: batches are consecutive, and the first begins where the image ends."""

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
        """Commit what is below the high watermark. Returns the delta and the new image; None if nothing is
        new."""
        below = self.below(high_watermark)
        return self.committed(below, at_once(self.replay_in_steps(image, below))) if below else None

    def below(self, high_watermark: int) -> list[Batch]:
        """The batches that this high watermark commits."""
        found = []
        for batch in self.batches:
            if batch.end_offset > high_watermark:
                break
            found.append(batch)
        return found

    def replay_in_steps(self, image: MetadataImage, batches: Sequence[Batch]) -> Steps[Replayed]:
        """Compute what the first batches change. Changes nothing yet."""
        delta, transactions = MetadataDelta(image), self.transactions.copy()
        for batch in batches:
            yield from delta.replay_in_steps(transactions.pass_on(batch.records))
        return delta, transactions

    def begins_with(self, batches: Sequence[Batch]) -> bool:
        """Whether these batches are still the first ones."""
        return len(self.batches) >= len(batches) and all(
            ours is theirs for ours, theirs in zip(self.batches, batches, strict=False)
        )

    def committed(self, batches: Sequence[Batch], replayed: Replayed) -> tuple[MetadataDelta, MetadataImage]:
        """Remove the first batches, which are committed, and return the image that holds them."""
        delta, self.transactions = replayed
        for batch in batches:
            self.batches.popleft()
            self._note_registrations(batch)
        last = batches[-1]
        return delta, delta.apply(Provenance(last.end_offset - 1, last.epoch, last.timestamp_ms))

    def pop_all(self, image: MetadataImage) -> tuple[MetadataDelta, MetadataImage, Sequence[Batch]]:
        """Remove all batches and return the image with them, as a new leader sees it. The new leader commits
        them together with its own first records."""
        popped, self.batches = self.batches, deque()
        delta = MetadataDelta(image)
        self.transactions = self.transactions.copy()
        for batch in popped:
            self._note_registrations(batch)
            delta.replay_all(self.transactions.pass_on(batch.records))
        at = image.provenance
        if popped:
            at = Provenance(popped[-1].end_offset - 1, popped[-1].epoch, popped[-1].timestamp_ms)
        return delta, delta.apply(at), popped

    def _note_registrations(self, batch: Batch) -> None:
        for index, record in enumerate(batch.records):
            if type(record) is RegisterBrokerRecord:
                self.registered_at[record.broker_id] = batch.base_offset + index

"""Verification of transactions: a leader asks the coordinator before it appends a producer's first batch
(KIP-890).

A `Verification` represents one producer on one partition whose request to the coordinator is under way. The
waiting batch is appended only if the same object is still registered. A marker that is written meanwhile
removes it, so that no batch is appended after the end of its transaction.
Does not know: the coordinator, the log, the clock.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BatchHeader

VERIFICATIONS_MAX = 100_000  # of one partition; the oldest is dropped


class Verification:
    """Batches with a sequence above `lowest_sequence` are refused until that one was appended."""

    __slots__ = ("bumps_epoch", "epoch", "lowest_sequence", "started_ms")

    def __init__(self, lowest_sequence: int, epoch: int, *, bumps_epoch: bool, started_ms: int) -> None:
        self.lowest_sequence = lowest_sequence
        self.epoch = epoch
        self.bumps_epoch = bumps_epoch  # the producer's epoch grows with every transaction
        self.started_ms = started_ms

    def note(self, sequence: int, epoch: int) -> None:
        """Include another batch of the same producer."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence


ONGOING = Verification(-1, -1, bumps_epoch=False, started_ms=0)
"""For a transactional batch that was not verified: allowed only if its transaction is already open."""

NOT_REQUIRED = Verification(-1, -1, bumps_epoch=False, started_ms=0)
"""For a transactional batch when verification is disabled."""


class Verifications:
    """The verifications of one partition, by producer id."""

    __slots__ = ("by_producer",)

    def __init__(self) -> None:
        self.by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self.by_producer)

    def start(
        self, producer_id: int, sequence: int, epoch: int, *, bumps_epoch: bool, now_ms: int
    ) -> Verification:
        """The producer's verification: the one under way, or a new one."""
        found = self.by_producer.get(producer_id)
        if found is not None:
            found.note(sequence, epoch)
            return found
        if len(self.by_producer) >= VERIFICATIONS_MAX:
            del self.by_producer[next(iter(self.by_producer))]
        started = Verification(sequence, epoch, bumps_epoch=bumps_epoch, started_ms=now_ms)
        self.by_producer[producer_id] = started
        return started

    def check(self, producer_id: int, given: Verification | None) -> None:
        """Refuse a first batch without a verification, or whose verification was removed by a marker."""
        if given is NOT_REQUIRED or (given is not None and given is self.by_producer.get(producer_id)):
            return
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {producer_id} has no transaction open that this belongs to",
        )

    def check_sequence(self, header: BatchHeader, *, is_first: bool) -> None:
        """Refuse a batch that is ahead of the one under verification. Refuse a batch with a sequence other
        than 0 if its producer has not written in this epoch."""
        started = self.by_producer.get(header.producer_id)
        if started is None:
            return
        sequence = header.base_sequence
        if is_first and sequence != 0 and started.bumps_epoch:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} starts with sequence {sequence}, not 0",
            )
        if sequence > started.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sent sequence {sequence},"
                f" {started.lowest_sequence} comes first",
            )

    def on_append(self, producer_id: int) -> None:
        """The first batch was appended: the transaction is open on this partition."""
        self.by_producer.pop(producer_id, None)

    def on_marker(self, producer_id: int, marker_epoch: int) -> None:
        """A marker was written: remove the producer's verification, unless it is for the next transaction,
        which has the epoch of the marker."""
        found = self.by_producer.get(producer_id)
        if found is not None and not (found.bumps_epoch and found.epoch == marker_epoch):
            del self.by_producer[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        for producer_id, found in list(self.by_producer.items()):
            if now_ms - found.started_ms >= expiration_ms:
                del self.by_producer[producer_id]

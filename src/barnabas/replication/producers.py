"""The producers of one partition: their sequence numbers, epochs and open transactions (KIP-98).

In: headers of batches before (`check`) and after the append (`apply`), for data and for markers. Out: None,
the offsets of a duplicate, or the KafkaError that Kafka returns. `check` changes nothing, `apply` cannot
fail.
Does not know: the log, files (see `producer_snapshot`), the clock, the transaction coordinator.
"""

from collections.abc import Generator, Iterable, Iterator

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import (
    INT32_MAX,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from barnabas.replication.producer_state import (
    NO_OFFSET,
    BatchMetadata,
    CompletedTransaction,
    ProducerState,
)
from barnabas.replication.verification import Verification, Verifications

EPOCH_MAX = 2**15 - 1
PRODUCERS_A_STEP = 500
STRICT_MARKERS_SINCE = 2  # transaction version from which markers have a newer epoch than the data


class ProducerStates:
    """All producers of one partition, and its transactions that are open or whose marker is not
    replicated."""

    __slots__ = ("_ongoing", "_states", "_unreplicated", "_verifying", "end_offset", "verifications")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset  # the state reflects the log up to this offset
        self._states: dict[int, ProducerState] = {}
        self._ongoing: dict[int, int] = {}  # first offset -> producer id, in the order of offsets
        self._unreplicated: dict[
            int, CompletedTransaction
        ] = {}  # by first offset; marker above high watermark
        self.verifications = Verifications()
        self._verifying = self.verifications.by_producer  # nearly always empty, and read for every batch

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(self._states.values())

    def get(self, producer_id: int) -> ProducerState | None:
        return self._states.get(producer_id)

    # -- appends of data

    def check(self, header: BatchHeader, verification: Verification | None = None) -> BatchMetadata | None:
        """Check a client's batch. None if it may be appended, or the earlier batch that it repeats.
        KafkaError if Kafka would refuse it. `verification` belongs to a transactional batch."""
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        state = self._states.get(producer_id)
        if (
            state is not None
            and header.base_sequence == state.next_sequence
            and header.producer_epoch == state.producer_epoch
            and (header.attributes & TRANSACTIONAL_FLAG == 0) is (state.txn_first_offset < 0)
            and not self._verifying
        ):
            return None
        return self._check_unexpected(header, state, verification)

    def _check_unexpected(
        self, header: BatchHeader, state: ProducerState | None, verification: Verification | None
    ) -> BatchMetadata | None:
        epoch, sequence = header.producer_epoch, header.base_sequence
        if state is not None and epoch == state.producer_epoch:
            last_sequence = header.last_sequence
            for batch in state.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == sequence:
                    return batch
        self._check_transaction(header, state, verification)
        self.verifications.check_sequence(header, is_first=state is None or not state.batches)
        if state is None:
            # The producer is unknown (new, expired, or deleted with the log): any sequence may be its first.
            return None
        if state.producer_epoch != NO_PRODUCER_EPOCH:
            if epoch != state.producer_epoch and sequence != 0:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {state.producer_id} starts epoch {epoch} with sequence {sequence}, not 0"
                    f" (its epoch was {state.producer_epoch})",
                )
            if epoch == state.producer_epoch and sequence != state.next_sequence:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {state.producer_id} sent sequence {sequence}, {state.next_sequence} is next",
                )
        if state.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_FLAG:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {state.producer_id} has an open transaction since offset {state.txn_first_offset},"
                " but sent a batch outside of it",
            )
        return None

    def check_coordinator_batch(self, header: BatchHeader, verification: Verification | None) -> None:
        """Check a batch that a coordinator writes in a client's transaction. It has no sequence."""
        self._check_transaction(header, self._states.get(header.producer_id), verification)

    def _check_transaction(
        self, header: BatchHeader, state: ProducerState | None, verification: Verification | None
    ) -> None:
        epoch = header.producer_epoch
        if state is not None:
            self.check_epoch(state, epoch)
        if header.attributes & TRANSACTIONAL_FLAG and (
            state is None or state.txn_first_offset < 0 or state.producer_epoch != epoch
        ):
            self.verifications.check(header.producer_id, verification)

    @staticmethod
    def check_epoch(state: ProducerState, epoch: int) -> None:
        if epoch < state.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {state.producer_id} sent epoch {epoch}, the last seen is {state.producer_epoch}",
            )

    def apply(self, header: BatchHeader) -> None:
        """Record an appended data batch. Its header has final offsets. For markers see `apply_marker`."""
        delta = header.last_offset_delta
        last_offset = header.base_offset + delta
        self.end_offset = last_offset + 1
        producer_id = header.producer_id
        if producer_id < 0:
            return
        state = self._states.get(producer_id)
        if state is None:
            state = self._states[producer_id] = ProducerState(producer_id)
        if header.producer_epoch != state.producer_epoch:
            state.producer_epoch = header.producer_epoch
            state.batches.clear()
        timestamp = header.max_timestamp
        last_sequence = (
            (header.base_sequence + delta) & INT32_MAX if header.base_sequence >= 0 else NO_SEQUENCE
        )
        state.batches.append(BatchMetadata(last_sequence, last_offset, delta, timestamp))
        state.next_sequence = (last_sequence + 1) & INT32_MAX
        state.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL_FLAG:
            if state.txn_first_offset < 0:
                state.txn_first_offset = header.base_offset
                self._ongoing[header.base_offset] = producer_id
            self.verifications.on_append(producer_id)

    # -- transactions

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, bumps_epoch: bool, now_ms: int
    ) -> Verification | None:
        """Begin a verification before the coordinator is asked. None if the transaction is already open
        here."""
        state = self._states.get(producer_id)
        if state is not None:
            self.check_epoch(state, epoch)
            if state.txn_first_offset >= 0 and state.producer_epoch == epoch:
                return None
        return self.verifications.start(producer_id, sequence, epoch, bumps_epoch=bumps_epoch, now_ms=now_ms)

    def check_marker(self, header: BatchHeader, coordinator_epoch: int, transaction_version: int = 0) -> None:
        """Check an end-of-transaction marker of a coordinator; KafkaError if it may not be written.

        From transaction version 2 on, its epoch must be newer than that of the data. The same epoch is
        allowed if the transaction has already ended, and if the epochs are exhausted.
        """
        epoch = header.producer_epoch
        state = self._states.get(header.producer_id) or ProducerState(header.producer_id)
        if (
            transaction_version >= STRICT_MARKERS_SINCE
            and epoch == state.producer_epoch != EPOCH_MAX
            and state.txn_first_offset >= 0
        ):
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker of epoch {epoch} for producer {state.producer_id} is not newer than its data",
            )
        self.check_epoch(state, epoch)
        if coordinator_epoch < state.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {coordinator_epoch} ends a transaction of {state.producer_id},"
                f" the current one is of epoch {state.coordinator_epoch}",
            )

    def apply_marker(
        self, header: BatchHeader, coordinator_epoch: int, *, aborted: bool
    ) -> CompletedTransaction | None:
        """Record an appended marker. Returns the transaction that it ends, or None if that had no data
        here."""
        self.end_offset = header.next_offset
        state = self._states.get(header.producer_id)
        if state is None:
            state = self._states[header.producer_id] = ProducerState(header.producer_id)
        if header.producer_epoch != state.producer_epoch:
            state.producer_epoch = header.producer_epoch
            state.batches.clear()
            state.next_sequence = 0
        state.coordinator_epoch = coordinator_epoch
        state.last_timestamp = header.max_timestamp
        self.verifications.on_marker(header.producer_id, header.producer_epoch)
        first_offset, state.txn_first_offset = state.txn_first_offset, NO_OFFSET
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        completed = CompletedTransaction(header.producer_id, first_offset, header.base_offset, aborted)
        self._unreplicated[first_offset] = completed
        return completed

    def has_ongoing_transaction(self, producer_id: int) -> bool:
        state = self._states.get(producer_id)
        return state is not None and state.txn_first_offset >= 0

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset to store in the transaction index for a completed transaction."""
        return next(iter(self._ongoing), completed.last_offset + 1)

    def first_undecided_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        return next(iter(self._ongoing), None)

    def first_unstable_offset(self, high_watermark: int = 0) -> int | None:
        """The first offset of the oldest transaction that is open or whose marker is not replicated yet."""
        if self._unreplicated:
            self.advance_high_watermark(high_watermark)
        if not self._unreplicated:
            return next(iter(self._ongoing), None) if self._ongoing else None
        first = min(self._unreplicated)
        return min(first, next(iter(self._ongoing), first))

    def oldest_transaction_timestamp(self) -> int:
        """The last timestamp of the oldest open transaction, or -1. Used to detect hanging transactions."""
        for producer_id in self._ongoing.values():
            state = self._states.get(producer_id)
            return state.last_timestamp if state is not None else NO_TIMESTAMP
        return NO_TIMESTAMP

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is below the high watermark: they are stable now."""
        if self._unreplicated:
            for first_offset, completed in list(self._unreplicated.items()):
                if completed.last_offset < high_watermark:
                    del self._unreplicated[first_offset]

    def advance_log_start(self, log_start_offset: int) -> None:
        self.advance_high_watermark(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    # -- upkeep

    def expire(self, now_ms: int, expiration_ms: int) -> Generator[None, None, list[int]]:
        """Remove producers that wrote nothing for `producer.id.expiration.ms`, in steps. Returns their
        ids."""
        expired = []
        for count, state in enumerate(list(self._states.values()), 1):
            if (
                state.txn_first_offset < 0
                and now_ms - state.last_timestamp >= expiration_ms
                and self._states.get(state.producer_id) is state
            ):
                self._states.pop(state.producer_id, None)  # `release` may be at work in a thread
                expired.append(state.producer_id)
            if not count % PRODUCERS_A_STEP:
                yield
        self.verifications.expire(now_ms, expiration_ms)
        return expired

    def release(self) -> None:
        """Forget all producers one by one, in a thread, when nothing uses this object any more.

        Python frees an object with all its parts in one go, and no other thread runs meanwhile: that takes
        20 ms for a hundred thousand producers.
        """
        states = self._states
        while states:
            states.popitem()

    def reset(self, end_offset: int, states: Iterable[ProducerState] = ()) -> None:
        """Replace all state by that of a snapshot at `end_offset`, or by nothing."""
        self.end_offset = end_offset
        self._states = {state.producer_id: state for state in states}
        self._unreplicated.clear()
        self._ongoing = dict(
            sorted(
                (s.txn_first_offset, s.producer_id) for s in self._states.values() if s.txn_first_offset >= 0
            )
        )

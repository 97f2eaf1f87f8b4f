"""EndTxn and every other end of a transaction: one record prepares it, another completes it.

In: the state of the id, and how the transaction ends. Out: the value that prepares the end and cannot be
undone, and, once the markers are written, the value that completes it. From transaction version 2 on each end
raises the producer's epoch, so that late records of the old epoch are refused (KIP-890). A producer whose
epochs are used up gets a new id.
Does not know: the shard, other ids, partitions.
"""

from __future__ import annotations

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.transaction_state import TransactionLogValue
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.transactions.outcome import ProducerIds
from barnabas.transactions.records import NO_PRODUCER_ID
from barnabas.transactions.states import State
from barnabas.transactions.transaction import (
    EPOCH_BUMPS_SINCE,
    EPOCH_MAX,
    EPOCH_MAX_OF_CLIENTS,
    NO_PRODUCER_EPOCH,
    Transaction,
)

EPOCH_BUMPS_IN_VERSION = 5  # of EndTxn: the client uses transaction version 2


class Ended:
    """The result of a decision to end: a value to write, or None if the transaction had already ended."""

    __slots__ = ("last_producer_epoch", "value")

    def __init__(self, value: TransactionLogValue | None, last_producer_epoch: int) -> None:
        self.value = value
        self.last_producer_epoch = last_producer_epoch


def end(
    transaction: Transaction,
    request: EndTxnRequest,
    version: int,
    producer_ids: ProducerIds,
    now_ms: int,
) -> Ended:
    """End a transaction at its client's request."""
    if version < EPOCH_BUMPS_IN_VERSION:
        return end_at_same_epoch(transaction, request, now_ms)
    return end_at_next_epoch(transaction, request, producer_ids, now_ms)


# Clients of transaction versions 0 and 1


def end_at_same_epoch(transaction: Transaction, request: EndTxnRequest, now_ms: int) -> Ended:
    state = transaction.state
    if transaction.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if state is State.ONGOING:
        prepared = State.PREPARE_COMMIT if request.committed else State.PREPARE_ABORT
        return prepare_at_same_epoch(transaction, prepared, now_ms)
    if has_ended_as(state, request.committed):
        return Ended(None, transaction.last_producer_epoch)
    raise invalid(state)


def prepare_at_same_epoch(transaction: Transaction, prepared: State, now_ms: int) -> Ended:
    value = transaction.value(prepared, now_ms, next_producer_id=NO_PRODUCER_ID, client_transaction_version=0)
    return Ended(value, transaction.last_producer_epoch)


# Clients of transaction version 2


def end_at_next_epoch(
    transaction: Transaction, request: EndTxnRequest, producer_ids: ProducerIds, now_ms: int
) -> Ended:
    """Decide EndTxn of version 2. The current epoch asks for a new end, the previous epoch repeats the
    last one."""
    state, epoch = transaction.state, request.producer_epoch
    if state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    got_new_id = (
        request.producer_id == transaction.previous_producer_id
        and epoch == EPOCH_MAX_OF_CLIENTS
        and transaction.producer_epoch == 0
    )
    # Only an end that raised the epoch can be repeated with the previous one. (Apache Kafka 4.3 accepts such
    # a request even when the latest end kept the epoch, which lets a fenced producer back in.)
    is_again = got_new_id or (
        transaction.producer_epoch == epoch + 1 and transaction.client_version >= EPOCH_BUMPS_SINCE
    )
    if transaction.producer_id != request.producer_id and not got_new_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if epoch != transaction.producer_epoch and not (is_again and state.is_complete):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if state is State.ONGOING:
        prepared = State.PREPARE_COMMIT if request.committed else State.PREPARE_ABORT
        return prepare_at_next_epoch(transaction, prepared, producer_ids, now_ms)
    if is_again and has_ended_as(state, request.committed):
        return Ended(None, transaction.last_producer_epoch)
    if not is_again and not request.committed and state.is_idle:
        # Partitions are added with their records, and there may be none: aborting an empty transaction is
        # valid.
        return prepare_at_next_epoch(transaction, State.PREPARE_ABORT, producer_ids, now_ms)
    raise invalid(state)


def prepare_at_next_epoch(
    transaction: Transaction, prepared: State, producer_ids: ProducerIds, now_ms: int
) -> Ended:
    epoch = transaction.producer_epoch
    value = transaction.value(
        prepared,
        now_ms,
        producer_epoch=min(epoch + 1, EPOCH_MAX),
        next_producer_id=producer_ids.pop() if transaction.is_exhausted else NO_PRODUCER_ID,
        transaction_start_timestamp_ms=(
            transaction.start_ms if transaction.state is State.ONGOING else now_ms
        ),
        client_transaction_version=EPOCH_BUMPS_SINCE,
    )
    return Ended(value, epoch)


# The coordinator itself


def fence(transaction: Transaction, bumps_epochs: bool, producer_ids: ProducerIds, now_ms: int) -> Ended:
    """Abort an open transaction and fence its producer, which gets the error with its next request.
    `bumps_epochs`: the cluster has finalized transaction version 2."""
    if bumps_epochs:
        return prepare_at_next_epoch(transaction, State.PREPARE_ABORT, producer_ids, now_ms)
    value = transaction.value(
        State.PREPARE_ABORT,
        now_ms,
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX),
        next_producer_id=NO_PRODUCER_ID,
        client_transaction_version=0,
    )
    return Ended(value, NO_PRODUCER_EPOCH)


def complete(transaction: Transaction, now_ms: int) -> TransactionLogValue:
    """Complete the transaction after all markers are written; a new producer id replaces the old one."""
    is_commit = transaction.state is State.PREPARE_COMMIT
    producer_id, epoch = after(transaction)
    return transaction.value(
        State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT,
        now_ms,
        partitions=(),
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
    )


def after(transaction: Transaction) -> tuple[int, int]:
    """The producer id and epoch after a prepared transaction is complete."""
    if transaction.client_version >= EPOCH_BUMPS_SINCE and transaction.next_producer_id != NO_PRODUCER_ID:
        return transaction.next_producer_id, 0
    return transaction.producer_id, transaction.producer_epoch


def identity_after(transaction: Transaction, ended: Ended) -> tuple[int, int]:
    """The producer id and epoch that the client has after this end."""
    value = ended.value
    if value is None:
        return transaction.producer_id, transaction.producer_epoch
    if value.next_producer_id != NO_PRODUCER_ID:
        return value.next_producer_id, 0
    return value.producer_id, value.producer_epoch


def has_ended_as(state: State, is_commit: bool) -> bool:
    return state is (State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT)


def invalid(state: State) -> KafkaError:
    """The error for a commit without a begin, or for the opposite of the earlier end."""
    code = ErrorCode.INVALID_TXN_STATE if state.is_idle else ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(code)

"""InitProducerId: a producer claims its transactional id, and the previous owner is fenced.

In: the state of the id, and the request. Out: the value of the record that gives the producer its id and
epoch. If the previous owner left a transaction open, this is aborted first, and the producer must retry.
Does not know: the shard, other ids.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.transaction_state import TransactionLogValue
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.transactions.outcome import ProducerIds
from barnabas.transactions.records import NO_PRODUCER_ID
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import State
from barnabas.transactions.transaction import (
    NO_PRODUCER_EPOCH,
    NO_TIME_MS,
    NO_TIMEOUT_MS,
    Transaction,
    is_exhausted,
)


class Expected(NamedTuple):
    """The producer id and epoch that the client believes it has (KIP-360); None if it has just started."""

    producer_id: int
    producer_epoch: int


class Begun(NamedTuple):
    value: TransactionLogValue
    last_producer_epoch: int


def expected(request: InitProducerIdRequest) -> Expected | None:
    """The id and epoch of the request: both are set, or none."""
    given = Expected(request.producer_id, request.producer_epoch)
    if given == (NO_PRODUCER_ID, NO_PRODUCER_EPOCH):
        return None
    if given.producer_id == NO_PRODUCER_ID or given.producer_epoch == NO_PRODUCER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return given


def check(request: InitProducerIdRequest, settings: TransactionSettings) -> None:
    """Raise KafkaError for what can be refused without the state of the id."""
    expected(request)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc and not settings.two_phase_commit_enabled:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)  # as in Apache Kafka 4.3
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= settings.timeout_ms_max:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def must_abort_first(transaction: Transaction, given: Expected | None) -> bool:
    """Whether a transaction is open that must be aborted first. Raises KafkaError if the producer may not
    begin now."""
    if transaction.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if given is not None and not may_begin(transaction, given):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is State.ONGOING:
        return True
    if not transaction.state.is_idle:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return False


def may_begin(transaction: Transaction, given: Expected) -> bool:
    """Whether the client is a known producer, or its id was replaced when its epochs were used up, or the
    id is new here (its records expired while its owner continued)."""
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or given.producer_id == transaction.producer_id
        or (given.producer_id == transaction.previous_producer_id and is_exhausted(given.producer_epoch))
    )


def begin(
    transaction: Transaction,
    request: InitProducerIdRequest,
    given: Expected | None,
    producer_ids: ProducerIds,
    now_ms: int,
) -> Begun:
    """The next epoch of an id without an open transaction, or a new producer id when the epochs are used
    up."""
    producer_id = transaction.producer_id
    if needs_producer_id(transaction, given):
        producer_id, epoch = producer_ids.pop(), 0
        last = transaction.producer_epoch if given is not None else NO_PRODUCER_EPOCH
    else:
        epoch, last = next_epoch(transaction, given)
    value = transaction.value(
        State.EMPTY,
        now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_timeout_ms=NO_TIMEOUT_MS if request.enable2_pc else request.transaction_timeout_ms,
        transaction_start_timestamp_ms=NO_TIME_MS,
    )
    return Begun(value, last)


def needs_producer_id(transaction: Transaction, given: Expected | None) -> bool:
    return transaction.is_exhausted and (given is None or given.producer_epoch == transaction.producer_epoch)


def next_epoch(transaction: Transaction, given: Expected | None) -> tuple[int, int]:
    """The epoch to assign, and the one that the client may send again if the response is lost."""
    current = transaction.producer_epoch
    if transaction.is_exhausted:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # an old epoch; Apache Kafka returns the same error
    if given is None:
        return current + 1, NO_PRODUCER_EPOCH
    if current == NO_PRODUCER_EPOCH or given.producer_epoch == current:
        return current + 1, current
    if given.producer_epoch == transaction.last_producer_epoch:
        return current, transaction.last_producer_epoch  # a retry: no other producer began in between
    raise KafkaError(ErrorCode.PRODUCER_FENCED)

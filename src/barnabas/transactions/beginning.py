"""InitProducerId: a producer takes its transactional id, and whoever had it before is fenced.

In: what is known of the id, and the request. Out: the value of the record that gives the producer its id and
epoch; or the abort of what the one before left open, and the advice to come again.
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
    """Who the producer believes to be (KIP-360); None stands for a producer that has just started."""

    producer_id: int
    producer_epoch: int


class Begun(NamedTuple):
    value: TransactionLogValue
    last_producer_epoch: int


def expected(request: InitProducerIdRequest) -> Expected | None:
    """Id and epoch come together or not at all."""
    given = Expected(request.producer_id, request.producer_epoch)
    if given == (NO_PRODUCER_ID, NO_PRODUCER_EPOCH):
        return None
    if given.producer_id == NO_PRODUCER_ID or given.producer_epoch == NO_PRODUCER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return given


def check(request: InitProducerIdRequest, settings: TransactionSettings) -> None:
    """What can be refused without a look at the id."""
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
    """Whether a transaction is open that has to be aborted. KafkaError: the producer may not begin now."""
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
    """A known producer, or one whose id was replaced when its epochs were used up, or an id that is new here
    (its records expired, and its owner goes on)."""
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
    """The next epoch of an id without an open transaction, or a new producer id when epochs are used up."""
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
    """The epoch to give out, and the one that its owner may come with if the answer is lost."""
    current = transaction.producer_epoch
    if transaction.is_exhausted:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # an old epoch; Apache Kafka is surprised too
    if given is None:
        return current + 1, NO_PRODUCER_EPOCH
    if current == NO_PRODUCER_EPOCH or given.producer_epoch == current:
        return current + 1, current
    if given.producer_epoch == transaction.last_producer_epoch:
        return current, transaction.last_producer_epoch  # asked again: nobody came in between
    raise KafkaError(ErrorCode.PRODUCER_FENCED)

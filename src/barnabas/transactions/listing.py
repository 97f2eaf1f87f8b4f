"""DescribeTransactions and ListTransactions.

In: the transactions of a shard, names and filters. Out: parts of responses. A list is filtered by state,
producer id, how long the transaction is open, and a pattern that the whole id must match (KIP-1152).
Does not know: the shard, authorization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.transactions.outcome import TopicPartition
from barnabas.transactions.states import BY_LABEL, State
from barnabas.transactions.transaction import Transaction


def described(
    transactional_id: str, transaction: Transaction | None
) -> DescribeTransactionsResponse.TransactionState:
    shown = DescribeTransactionsResponse.TransactionState(transactional_id=transactional_id)
    if not transactional_id:
        shown.error_code = ErrorCode.INVALID_REQUEST
    elif transaction is None or transaction.state is State.DEAD:
        shown.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    else:
        shown.transaction_state = transaction.state.label
        shown.transaction_timeout_ms = transaction.timeout_ms
        shown.transaction_start_time_ms = transaction.start_ms
        shown.producer_id = transaction.producer_id
        shown.producer_epoch = transaction.producer_epoch
        shown.topics = topics_of(transaction)
    return shown


def topics_of(transaction: Transaction) -> list[DescribeTransactionsResponse.TransactionState.TopicData]:
    """The partitions of an open transaction; of one that is ending, those that wait for their markers."""
    partitions: Iterable[TopicPartition] = transaction.partitions
    if transaction.state.is_prepared:
        partitions = (where for where in transaction.partitions if where in transaction.unmarked)
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    data = DescribeTransactionsResponse.TransactionState.TopicData
    return [data(topic=topic, partitions=numbers) for topic, numbers in topics.items()]


def listed(
    request: ListTransactionsRequest, transactions: Iterable[Transaction], now_ms: int
) -> Steps[ListTransactionsResponse]:
    """The transactions that match the filters. Unknown states are named in the response, and match
    nothing."""
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in dict.fromkeys(request.state_filters) if name not in BY_LABEL]
    )
    try:
        matches_filters = filter_of(request, now_ms)
    except KafkaError as refused:
        return ListTransactionsResponse(error_code=refused.code)
    for each in transactions:
        if matches_filters(each):
            response.transaction_states.append(
                ListTransactionsResponse.TransactionState(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.state.label,
                )
            )
        yield
    return response


def filter_of(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    states = {BY_LABEL[name] for name in request.state_filters if name in BY_LABEL}
    producer_ids = set(request.producer_id_filters)
    duration_ms = request.duration_filter
    matches = pattern(request.transactional_id_pattern)

    def matches_filters(transaction: Transaction) -> bool:
        return (
            transaction.state is not State.DEAD
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (not request.state_filters or transaction.state in states)
            and (duration_ms < 0 or now_ms - transaction.start_ms > duration_ms)
            and (matches is None or matches(transaction.transactional_id))
        )

    return matches_filters


def pattern(text: str | None) -> Callable[[str], bool] | None:
    if not text:
        return None
    try:
        return matcher(text).matches
    except RegexError as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error

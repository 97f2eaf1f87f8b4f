"""ListTransactions: the transactional ids that this broker coordinates, by state, producer, age, pattern."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import describe_transactional_ids
from barnabas.broker.api.routes import handles
from barnabas.metadata.steps import at_once
from barnabas.protocol import Message
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


@handles(ListTransactionsRequest, "0-2", needs=describe_transactional_ids(""))
def list_transactions(request: ListTransactionsRequest, context: RequestContext) -> Message | Deferred:
    transactions = context.broker.transactions
    if transactions.is_started and not transactions.hosts:
        return nothing(request)
    return transactions.handle_all(request, context, combine)


def nothing(request: ListTransactionsRequest) -> ListTransactionsResponse:
    """There is not one shard; the request may be wrong nevertheless."""
    from barnabas.transactions.listing import listed

    return at_once(listed(request, (), 0))


def combine(answers: list[ListTransactionsResponse]) -> ListTransactionsResponse:
    """One list; while a shard is still loading, its error instead: a part could be taken for all."""
    whole = ListTransactionsResponse()
    for answer in answers:
        if answer.error_code:
            return ListTransactionsResponse(error_code=answer.error_code)
        whole.unknown_state_filters = answer.unknown_state_filters  # all shards know the same states
        whole.transaction_states += answer.transaction_states
    return whole

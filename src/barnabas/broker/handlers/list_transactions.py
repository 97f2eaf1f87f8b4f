"""ListTransactions: transactional ids that this broker coordinates, by state, producer, age or pattern."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import TRANSACTIONAL_ID, Need
from barnabas.broker.api.routes import handles
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import Message
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.security.acls.vocabulary import Operation

IDS_A_STEP = 64


@handles(ListTransactionsRequest, "0-2", needs=Need(Operation.DESCRIBE, TRANSACTIONAL_ID).left_out())
def list_transactions(request: ListTransactionsRequest, context: RequestContext) -> Message | Deferred:
    transactions = context.broker.transactions
    if transactions.is_started and not transactions.hosts:
        return list_none(request)
    rights = context.rights
    if rights is None:
        return transactions.handle_all(request, context, combine)

    def prune(response: ListTransactionsResponse) -> Steps[None]:
        visible = []
        for count, state in enumerate(response.transaction_states, 1):
            if rights.allow_quietly(Operation.DESCRIBE, TRANSACTIONAL_ID, state.transactional_id):
                visible.append(state)
            if not count % IDS_A_STEP:
                yield
        response.transaction_states = visible

    return transactions.handle_all(request, context, combine, prune)


def list_none(request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List no transactions, since there is no shard; an invalid request still gets its error."""
    from barnabas.transactions.listing import listed

    return at_once(listed(request, (), 0))


def combine(responses: list[ListTransactionsResponse]) -> ListTransactionsResponse:
    """Combine the lists of all shards. An error of one shard replaces the list, which would be incomplete."""
    whole = ListTransactionsResponse()
    for response in responses:
        if response.error_code:
            return ListTransactionsResponse(error_code=response.error_code)
        whole.unknown_state_filters = response.unknown_state_filters  # all shards know the same states
        whole.transaction_states += response.transaction_states
    return whole

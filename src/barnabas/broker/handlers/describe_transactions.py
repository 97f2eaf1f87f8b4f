"""DescribeTransactions: state, producer and partitions of transactional ids."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_transactional_ids
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)


@handles(DescribeTransactionsRequest, "0", needs=describe_transactional_ids("transactional_ids"))
def describe_transactions(request: DescribeTransactionsRequest, context: RequestContext) -> CombinedResponse:
    ids = request.transactional_ids

    def part(indexes: list[int]) -> DescribeTransactionsRequest:
        return DescribeTransactionsRequest(transactional_ids=[ids[index] for index in indexes])

    def whole(states: list[DescribeTransactionsResponse.TransactionState]) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(transaction_states=states)

    split = Split(part, lambda response: response.transaction_states, whole)
    return context.broker.transactions.handle_by_key(ids, split, context)

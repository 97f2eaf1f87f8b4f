"""DescribeTransactions: state, producer and partitions of transactional ids."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, TRANSACTIONAL_ID, describe_shown_topics, each
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.security.acls.vocabulary import Operation

NEEDS = (
    each(TRANSACTIONAL_ID, Operation.DESCRIBE, "transactional_ids.", "transaction_states"),
    describe_shown_topics,
)


@handles(DescribeTransactionsRequest, "0", needs=NEEDS)
def describe_transactions(request: DescribeTransactionsRequest, context: RequestContext) -> CombinedResponse:
    ids = request.transactional_ids

    def part(indexes: list[int]) -> DescribeTransactionsRequest:
        return DescribeTransactionsRequest(transactional_ids=[ids[index] for index in indexes])

    def whole(states: list[DescribeTransactionsResponse.TransactionState]) -> DescribeTransactionsResponse:
        rights = context.rights
        if rights is not None:
            for state in states:
                state.topics = [
                    topic
                    for topic in state.topics
                    if rights.allow_quietly(Operation.DESCRIBE, TOPIC, topic.topic)
                ]
        return DescribeTransactionsResponse(transaction_states=states)

    split = Split(part, lambda response: response.transaction_states, whole)
    return context.broker.transactions.handle_by_key(ids, split, context)

"""AddPartitionsToTxn: adds partitions to a transaction, or checks that they are in it.

Clients use versions 0 to 3 and name one transaction. Brokers use version 4 and later, and name many.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import write_transactional_id
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol import Message
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)

BATCHED_SINCE = 4


@handles(AddPartitionsToTxnRequest, "0-5", needs=write_transactional_id("v3_and_below_transactional_id"))
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> CombinedResponse | None:
    transactions = context.broker.transactions
    if context.version < BATCHED_SINCE:
        return transactions.handle(request.v3_and_below_transactional_id, request, context)
    asked = request.transactions

    def part(indexes: list[int]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(transactions=[asked[index] for index in indexes])

    def whole(results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]) -> Message:
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    split = Split(part, lambda response: response.results_by_transaction, whole)
    return transactions.handle_by_key([each.transactional_id for each in asked], split, context)

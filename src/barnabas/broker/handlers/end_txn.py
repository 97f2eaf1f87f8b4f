"""EndTxn: a producer commits or aborts its transaction.

From version 5 on, the response has the producer epoch of the next transaction (KIP-890).
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import write_transactional_id
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.transaction_coordinator import TransactionResponse
from barnabas.protocol.messages.end_txn import EndTxnRequest


@handles(EndTxnRequest, "0-5", needs=write_transactional_id)
def end_txn(request: EndTxnRequest, context: RequestContext) -> TransactionResponse:
    return context.broker.transactions.handle_with_ids(request.transactional_id, request, context)

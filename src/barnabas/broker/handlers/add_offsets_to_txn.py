"""AddOffsetsToTxn: announces that offsets of a group will be committed in a transaction."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group, write_transactional_id
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest


@handles(AddOffsetsToTxnRequest, "0-4", needs=(write_transactional_id, read_group))
def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.transactions.handle(request.transactional_id, request, context)

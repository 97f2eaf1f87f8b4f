"""AddPartitionsToTxn: adds partitions to a transaction, or checks that they are in it.

Clients use versions 0 to 3 and name one transaction. Brokers use version 4 and later, and name many.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, Need, Where, cluster_action, transactional_id
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.security.acls.vocabulary import Operation

BATCHED_SINCE = 4


NEEDS = (
    transactional_id(Operation.WRITE, "v3_and_below_transactional_id").up_to(BATCHED_SINCE - 1),
    # One refused topic: nothing is added, and the other partitions are not attempted.
    Need(Operation.WRITE, TOPIC, "v3_and_below_topics.name", Where.ITEM)
    .up_to(BATCHED_SINCE - 1)
    .asked_by_handler(),
    cluster_action.since(BATCHED_SINCE),
)


@handles(AddPartitionsToTxnRequest, "0-5", needs=NEEDS)
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> CombinedResponse | None:
    transactions = context.broker.transactions
    if context.version < BATCHED_SINCE:
        if context.rights is not None and (refused := refused_topics(request, context)):
            return refused_response(request, refused, context)
        return transactions.handle(request.v3_and_below_transactional_id, request, context)
    asked = request.transactions

    def part(indexes: list[int]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(transactions=[asked[index] for index in indexes])

    def whole(results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]) -> Message:
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    split = Split(part, lambda response: response.results_by_transaction, whole)
    return transactions.handle_by_key([each.transactional_id for each in asked], split, context)


def refused_topics(request: AddPartitionsToTxnRequest, context: RequestContext) -> set[str]:
    return {
        topic.name
        for topic in request.v3_and_below_topics
        if not context.may(Operation.WRITE, TOPIC, topic.name)
    }


def refused_response(
    request: AddPartitionsToTxnRequest, refused: set[str], context: RequestContext
) -> Message:
    from barnabas.transactions import adding

    [requested] = adding.requested_transactions(request, context.version)
    partitions = adding.partitions_of(requested)
    errors = adding.refused(partitions, context.broker.image.topics, context.version) or {}
    codes = {
        partition: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if partition.topic in refused
        else errors.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
        for partition in partitions
    }
    return adding.response([adding.result(requested, codes)], context.version)

"""InitProducerId: an id and epoch for an idempotent or transactional producer.

With a transactional id it also fences the earlier producer of that id. Version 6 (KIP-939, unstable) allows
transactions without a timeout.
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import Instead, cluster, transactional_id
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.transaction_coordinator import TransactionResponse
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.security.acls.vocabulary import Operation


def is_transactional(request: InitProducerIdRequest) -> bool:
    return request.transactional_id is not None


NEEDS = (
    transactional_id(Operation.WRITE).if_(is_transactional),
    transactional_id(Operation.TWO_PHASE_COMMIT).if_(
        lambda request: is_transactional(request) and request.enable2_pc
    ),
    cluster(Operation.IDEMPOTENT_WRITE)
    .or_(Instead.ANY_TOPIC_WRITE)
    .if_(lambda request: not is_transactional(request)),
)


@handles(InitProducerIdRequest, "0-5", needs=NEEDS, unstable_max=6)
def init_producer_id(request: InitProducerIdRequest, context: RequestContext) -> TransactionResponse:
    if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
        return refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return context.broker.transactions.handle_with_ids(request.transactional_id, request, context)
    return init_idempotent(context)


def init_idempotent(context: RequestContext) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    producer_id = context.broker.producer_ids.pop_if_ready()
    if producer_id is not None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return init_from_next_block(context)


async def init_from_next_block(context: RequestContext) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await context.broker.producer_ids.next(), producer_epoch=0)
    except KafkaError as error:
        return refused(error.code)


def refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)

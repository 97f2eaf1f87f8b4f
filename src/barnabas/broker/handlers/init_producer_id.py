"""InitProducerId: an id and epoch for an idempotent producer. Transactional ids come with the
transaction coordinator.
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.needs import idempotent_write
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@handles(InitProducerIdRequest, "0-5", needs=idempotent_write())
def init_producer_id(
    request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
        return refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return refused(ErrorCode.UNSUPPORTED_VERSION)
    producer_id = context.broker.producer_ids.next_at_hand()
    if producer_id is not None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    return next_block(context)


async def next_block(context: RequestContext) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await context.broker.producer_ids.next(), producer_epoch=0)
    except KafkaError as error:
        return refused(error.code)


def refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)

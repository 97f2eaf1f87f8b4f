"""Producer ids: blocks of a thousand for brokers, no id twice.

In: AllocateProducerIds from a registered broker. Out: a ProducerIdsRecord and the block it grants.
Does not know: who uses the ids, time.
"""

from __future__ import annotations

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.metadata import ProducerIdsRecord
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK_SIZE = 1000
INT64_MAX = 2**63 - 1


def allocate(context: Context, request: AllocateProducerIdsRequest) -> Decision[AllocateProducerIdsResponse]:
    context.check_broker_epoch(request.broker_id, request.broker_epoch)
    first = context.image.next_producer_id
    if first > INT64_MAX - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producerIds as the next block is too large."
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    reply = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision(reply, [record])

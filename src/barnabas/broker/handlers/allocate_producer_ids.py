"""AllocateProducerIds: a broker gets a block of producer ids from the controller."""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import cluster_action
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.protocol import Message
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest


@handles(AllocateProducerIdsRequest, "0", needs=cluster_action, listeners="controller")
def allocate_producer_ids(request: AllocateProducerIdsRequest, context: RequestContext) -> Awaitable[Message]:
    return to_controller(request, context)

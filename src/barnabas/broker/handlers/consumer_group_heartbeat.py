"""ConsumerGroupHeartbeat: a member of a consumer group joins, stays alive, or leaves (KIP-848)."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.metadata.versions import GROUP_VERSION
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@handles(ConsumerGroupHeartbeatRequest, "0-1", needs=read_group("group_id"))
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Message | Deferred | None:
    if not context.broker.image.features.level(GROUP_VERSION):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None)
    return context.broker.groups.handle(request.group_id, request, context)

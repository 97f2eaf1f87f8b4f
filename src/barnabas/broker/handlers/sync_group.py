"""SyncGroup: members of a classic group get their assignments, which the group leader computed."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_SINCE = 5
# A request that lacks the protocol is refused for that first, as in Kafka.
NEEDS = (
    read_group.up_to(PROTOCOL_SINCE - 1),
    read_group.since(PROTOCOL_SINCE).if_(lambda request: request.protocol_type and request.protocol_name),
)


@handles(SyncGroupRequest, "0-5", needs=NEEDS)
def sync_group(request: SyncGroupRequest, context: RequestContext) -> Message | Deferred | None:
    if context.version >= PROTOCOL_SINCE and not (request.protocol_type and request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return context.broker.groups.handle(request.group_id, request, context)

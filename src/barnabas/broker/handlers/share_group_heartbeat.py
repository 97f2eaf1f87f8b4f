"""ShareGroupHeartbeat: a member of a share group joins, stays alive, or leaves (KIP-932)."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group, topics
from barnabas.broker.api.routes import handles
from barnabas.metadata.versions import SHARE_VERSION
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.security.acls.vocabulary import Operation

MEMBER_ID_LENGTH_MAX = 36  # of a UUID with hyphens
NEEDS = (read_group, topics(Operation.DESCRIBE, "subscribed_topic_names."))


@handles(ShareGroupHeartbeatRequest, "1-1", needs=NEEDS)
def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, context: RequestContext
) -> Message | Deferred | None:
    if not context.broker.image.features.level(SHARE_VERSION):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not 0 < len(request.member_id) <= MEMBER_ID_LENGTH_MAX:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    return context.broker.groups.handle(request.group_id, request, context)

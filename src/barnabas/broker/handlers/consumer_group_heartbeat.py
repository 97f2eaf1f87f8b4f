"""ConsumerGroupHeartbeat: a member of a consumer group joins, stays alive, or leaves (KIP-848)."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import describe_shown_topics, read_group, topics
from barnabas.broker.api.routes import handles
from barnabas.metadata.versions import GROUP_VERSION
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.security.acls.vocabulary import Operation

NEEDS = (
    read_group,
    topics(Operation.DESCRIBE, "subscribed_topic_names."),
    describe_shown_topics,  # of those that an expression matches
)


@handles(ConsumerGroupHeartbeatRequest, "0-1", needs=NEEDS)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Message | Deferred | None:
    if not context.broker.image.features.level(GROUP_VERSION):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None)
    return context.broker.groups.handle(request.group_id, request, context)

"""OffsetCommit: commits the offsets of a group."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import TOPIC, each, read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.security.acls.vocabulary import Operation

TOPIC_IDS_SINCE = 10
NEEDS = (
    read_group,
    each(TOPIC, Operation.READ, "topics.name", "topics").up_to(TOPIC_IDS_SINCE - 1),
    each(TOPIC, Operation.READ, "topics.topic_id", "topics").since(TOPIC_IDS_SINCE),
)


@handles(OffsetCommitRequest, "2-10", needs=NEEDS)
def offset_commit(request: OffsetCommitRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

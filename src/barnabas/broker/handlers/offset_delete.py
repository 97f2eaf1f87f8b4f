"""OffsetDelete: deletes committed offsets of a group, by topic."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import TOPIC, each, group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.security.acls.vocabulary import Operation

NEEDS = (group(Operation.DELETE), each(TOPIC, Operation.READ, "topics.name", "topics"))


@handles(OffsetDeleteRequest, "0-0", needs=NEEDS)
def offset_delete(request: OffsetDeleteRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

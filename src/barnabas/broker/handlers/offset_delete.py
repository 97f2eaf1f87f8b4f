"""OffsetDelete: deletes committed offsets of a group, by topic."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import delete_groups
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest


@handles(OffsetDeleteRequest, "0-0", needs=delete_groups("group_id"))
def offset_delete(request: OffsetDeleteRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

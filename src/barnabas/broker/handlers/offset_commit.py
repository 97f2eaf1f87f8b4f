"""OffsetCommit: commits the offsets of a group."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest


@handles(OffsetCommitRequest, "2-10", needs=read_group("group_id"))
def offset_commit(request: OffsetCommitRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

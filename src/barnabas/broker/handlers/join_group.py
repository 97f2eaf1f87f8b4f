"""JoinGroup: a member joins a classic group; the response waits until all members have joined."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.join_group import JoinGroupRequest


@handles(JoinGroupRequest, "0-9", needs=read_group)
def join_group(request: JoinGroupRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

"""LeaveGroup: members leave a classic group."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.leave_group import LeaveGroupRequest


@handles(LeaveGroupRequest, "0-5", needs=read_group)
def leave_group(request: LeaveGroupRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

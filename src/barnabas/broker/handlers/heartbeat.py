"""Heartbeat: a member of a classic group reports that it is alive."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.heartbeat import HeartbeatRequest


@handles(HeartbeatRequest, "0-4", needs=read_group)
def heartbeat(request: HeartbeatRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

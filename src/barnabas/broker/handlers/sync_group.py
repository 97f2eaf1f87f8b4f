"""SyncGroup: members of a classic group get their assignments, which the group leader computed."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import read_group
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.sync_group import SyncGroupRequest


@handles(SyncGroupRequest, "0-5", needs=read_group("group_id"))
def sync_group(request: SyncGroupRequest, context: RequestContext) -> Message | Deferred | None:
    return context.broker.groups.handle(request.group_id, request, context)

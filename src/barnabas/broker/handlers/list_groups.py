"""ListGroups: the groups that this broker coordinates, by state and type if asked."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import describe_groups
from barnabas.broker.api.routes import handles
from barnabas.protocol import Message
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


@handles(ListGroupsRequest, "0-5", needs=describe_groups(""))
def list_groups(request: ListGroupsRequest, context: RequestContext) -> Message | Deferred:
    return context.broker.groups.handle_all(request, context, combine)


def combine(answers: list[ListGroupsResponse]) -> ListGroupsResponse:
    """One list; while a shard is still loading, its error instead: a part could be taken for all."""
    for answer in answers:
        if answer.error_code:
            return ListGroupsResponse(error_code=answer.error_code)
    return ListGroupsResponse(groups=[group for answer in answers for group in answer.groups])

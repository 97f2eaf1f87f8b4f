"""ListGroups: the groups that this broker coordinates, filtered by state and type."""

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


def combine(responses: list[ListGroupsResponse]) -> ListGroupsResponse:
    """Combine the lists of all shards. An error of one shard replaces the list, which would be incomplete."""
    for response in responses:
        if response.error_code:
            return ListGroupsResponse(error_code=response.error_code)
    return ListGroupsResponse(groups=[group for response in responses for group in response.groups])

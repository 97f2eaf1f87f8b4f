"""ListGroups: the groups that this broker coordinates, filtered by state and type."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import GROUP, Instead, Need
from barnabas.broker.api.routes import handles
from barnabas.metadata.steps import Steps
from barnabas.protocol import Message
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation, ResourceType

GROUPS_A_STEP = 64


@handles(
    ListGroupsRequest,
    "0-5",
    needs=Need(Operation.DESCRIBE, GROUP).or_(Instead.CLUSTER_DESCRIBE).left_out(),
)
def list_groups(request: ListGroupsRequest, context: RequestContext) -> Message | Deferred:
    rights = context.rights
    if rights is None or rights.allow_quietly(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return context.broker.groups.handle_all(request, context, combine)

    def prune(response: ListGroupsResponse) -> Steps[None]:
        visible = []
        for count, group in enumerate(response.groups, 1):
            if rights.allow_quietly(Operation.DESCRIBE, GROUP, group.group_id):
                visible.append(group)
            if not count % GROUPS_A_STEP:
                yield
        response.groups = visible

    return context.broker.groups.handle_all(request, context, combine, prune)


def combine(responses: list[ListGroupsResponse]) -> ListGroupsResponse:
    """Combine the lists of all shards. An error of one shard replaces the list, which would be incomplete."""
    for response in responses:
        if response.error_code:
            return ListGroupsResponse(error_code=response.error_code)
    return ListGroupsResponse(groups=[group for response in responses for group in response.groups])

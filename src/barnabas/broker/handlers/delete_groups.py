"""DeleteGroups: deletes groups without members, and their committed offsets."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, each
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.security.acls.vocabulary import Operation


@handles(DeleteGroupsRequest, "0-2", needs=each(GROUP, Operation.DELETE, "groups_names.", "results"))
def delete_groups(request: DeleteGroupsRequest, context: RequestContext) -> CombinedResponse:
    names = list(dict.fromkeys(request.groups_names))

    def part(indexes: list[int]) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=[names[index] for index in indexes])

    split = Split(
        part, lambda response: response.results, lambda results: DeleteGroupsResponse(results=results)
    )
    return context.broker.groups.handle_by_key(names, split, context)

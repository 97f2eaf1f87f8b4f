"""DeleteGroups: groups without members are forgotten, with their offsets."""

from __future__ import annotations

from barnabas.broker.api import needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


@handles(DeleteGroupsRequest, "0-2", needs=needs.delete_groups("groups_names"))
def delete_groups(request: DeleteGroupsRequest, context: RequestContext) -> CombinedResponse:
    names = list(dict.fromkeys(request.groups_names))

    def part(places: list[int]) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=[names[place] for place in places])

    split = Split(part, lambda answer: answer.results, lambda results: DeleteGroupsResponse(results=results))
    return context.broker.groups.handle_by_key(names, split, context)

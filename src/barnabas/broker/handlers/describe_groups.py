"""DescribeGroups: state, protocol and members of classic groups."""

from __future__ import annotations

from barnabas.broker.api import authorized, needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse


@handles(DescribeGroupsRequest, "0-6", needs=needs.describe_groups("groups"))
def describe_groups(request: DescribeGroupsRequest, context: RequestContext) -> CombinedResponse:
    names = request.groups

    def part(indexes: list[int]) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=[names[index] for index in indexes])

    def whole(groups: list[DescribeGroupsResponse.DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized.ON_GROUP
        return DescribeGroupsResponse(groups=groups)

    split = Split(part, lambda response: response.groups, whole)
    return context.broker.groups.handle_by_key(names, split, context)

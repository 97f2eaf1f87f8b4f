"""DescribeGroups: state, protocol and members of classic groups."""

from __future__ import annotations

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, each
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.security.acls.vocabulary import Operation


@handles(DescribeGroupsRequest, "0-6", needs=each(GROUP, Operation.DESCRIBE, "groups.", "groups"))
def describe_groups(request: DescribeGroupsRequest, context: RequestContext) -> CombinedResponse:
    names = request.groups

    def part(indexes: list[int]) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=[names[index] for index in indexes])

    def whole(groups: list[DescribeGroupsResponse.DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized.on_group(context, group.group_id)
        return DescribeGroupsResponse(groups=groups)

    split = Split(part, lambda response: response.groups, whole)
    return context.broker.groups.handle_by_key(names, split, context)

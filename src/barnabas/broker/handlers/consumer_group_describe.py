"""ConsumerGroupDescribe: state, epochs, members and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_groups
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.metadata.versions import GROUP_VERSION
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

Described = ConsumerGroupDescribeResponse.DescribedGroup


@handles(ConsumerGroupDescribeRequest, "0-1", needs=describe_groups("group_ids"))
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> CombinedResponse:
    names = request.group_ids
    if not context.broker.image.features.level(GROUP_VERSION):
        refused = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=[Described(group_id=name, error_code=refused, error_message=None) for name in names]
        )

    def part(indexes: list[int]) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest(group_ids=[names[index] for index in indexes])

    def whole(groups: list[Described]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized.ON_GROUP
        without_name = Described(error_code=ErrorCode.INVALID_GROUP_ID)
        return ConsumerGroupDescribeResponse(
            groups=[group if name else without_name for name, group in zip(names, groups, strict=True)]
        )

    split = Split(part, lambda response: response.groups, whole)
    return context.broker.groups.handle_by_key(names, split, context)

"""ShareGroupDescribe: state, epochs, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, TOPIC, Need, Where, each
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.metadata.versions import SHARE_VERSION
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

Described = ShareGroupDescribeResponse.DescribedGroup

NEEDS = (
    each(GROUP, Operation.DESCRIBE, "group_ids.", "groups"),
    Need(Operation.DESCRIBE, TOPIC, where=Where.ITEM).asked_by_handler(),  # of topics that members read
)
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


@handles(ShareGroupDescribeRequest, "1-1", needs=NEEDS)
def share_group_describe(request: ShareGroupDescribeRequest, context: RequestContext) -> CombinedResponse:
    names = request.group_ids
    if not context.broker.image.features.level(SHARE_VERSION):
        refused = ErrorCode.UNSUPPORTED_VERSION
        return ShareGroupDescribeResponse(
            groups=[Described(group_id=name, error_code=refused) for name in names]
        )

    def part(indexes: list[int]) -> ShareGroupDescribeRequest:
        return ShareGroupDescribeRequest(group_ids=[names[index] for index in indexes])

    def whole(groups: list[Described]) -> ShareGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized.on_group(context, group.group_id)
        if context.rights is not None:
            groups = [with_visible_topics(group, context.rights) for group in groups]
        without_name = Described(error_code=ErrorCode.INVALID_GROUP_ID)
        return ShareGroupDescribeResponse(
            groups=[group if name else without_name for name, group in zip(names, groups, strict=True)]
        )

    split = Split(part, lambda response: response.groups, whole)
    return context.broker.groups.handle_by_key(names, split, context)


def with_visible_topics(group: Described, rights: Rights) -> Described:
    """The group, or an error if it reads a topic that the caller may not describe."""
    names = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    if all(rights.allow_quietly(Operation.DESCRIBE, TOPIC, name) for name in sorted(names)):
        return group
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return Described(group_id=group.group_id, error_code=code, error_message=HIDDEN_TOPICS)

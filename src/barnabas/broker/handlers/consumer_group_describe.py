"""ConsumerGroupDescribe: state, epochs, members and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, TOPIC, Need, Where, each
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.metadata.versions import GROUP_VERSION
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

Described = ConsumerGroupDescribeResponse.DescribedGroup


NEEDS = (
    each(GROUP, Operation.DESCRIBE, "group_ids.", "groups"),
    Need(
        Operation.DESCRIBE, TOPIC, where=Where.ITEM
    ).asked_by_handler(),  # of every topic that members are assigned
)
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


@handles(ConsumerGroupDescribeRequest, "0-1", needs=NEEDS)
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
                    group.authorized_operations = authorized.on_group(context, group.group_id)
        if context.rights is not None:
            for group in groups:
                hide_topics(group, context.rights)
        without_name = Described(error_code=ErrorCode.INVALID_GROUP_ID)
        return ConsumerGroupDescribeResponse(
            groups=[group if name else without_name for name, group in zip(names, groups, strict=True)]
        )

    split = Split(part, lambda response: response.groups, whole)
    return context.broker.groups.handle_by_key(names, split, context)


def hide_topics(group: Described, rights: Rights) -> None:
    """Refuse a group with a topic that the caller may not describe."""
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not all(rights.allow_quietly(Operation.DESCRIBE, TOPIC, name) for name in sorted(names)):
        group.error_code, group.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS
        group.members = []

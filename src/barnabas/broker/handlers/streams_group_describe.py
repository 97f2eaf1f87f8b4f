"""StreamsGroupDescribe: state, epochs, topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, TOPIC, Need, Where, each
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.broker.handlers.streams_group_heartbeat import is_enabled
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

Described = StreamsGroupDescribeResponse.DescribedGroup

NEEDS = (
    each(GROUP, Operation.DESCRIBE, "group_ids.", "groups"),
    Need(Operation.DESCRIBE, TOPIC, where=Where.ITEM).asked_by_handler(),  # of every topic of the topology
)
HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


@handles(StreamsGroupDescribeRequest, "0-0", needs=NEEDS)
def streams_group_describe(request: StreamsGroupDescribeRequest, context: RequestContext) -> CombinedResponse:
    names = request.group_ids
    if not is_enabled(context):
        refused = ErrorCode.UNSUPPORTED_VERSION
        return StreamsGroupDescribeResponse(
            groups=[Described(group_id=name, error_code=refused) for name in names]
        )

    def part(indexes: list[int]) -> StreamsGroupDescribeRequest:
        return StreamsGroupDescribeRequest(group_ids=[names[index] for index in indexes])

    def whole(groups: list[Described]) -> StreamsGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized.on_group(context, group.group_id)
        if context.rights is not None:
            for group in groups:
                hide_topics(group, context.rights)
        without_name = Described(error_code=ErrorCode.INVALID_GROUP_ID)
        return StreamsGroupDescribeResponse(
            groups=[group if name else without_name for name, group in zip(names, groups, strict=True)]
        )

    split = Split(part, lambda response: response.groups, whole)
    return context.broker.groups.handle_by_key(names, split, context)


def hide_topics(group: Described, rights: Rights) -> None:
    """Refuse a group with a topic that the caller may not describe."""
    if group.topology is None:
        return
    names = {
        name
        for subtopology in group.topology.subtopologies or ()
        for name in (
            *subtopology.source_topics,
            *subtopology.repartition_sink_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
            *(topic.name for topic in subtopology.state_changelog_topics),
        )
    }
    if not all(rights.allow_quietly(Operation.DESCRIBE, TOPIC, name) for name in sorted(names)):
        group.error_code, group.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS
        group.group_state, group.group_epoch, group.assignment_epoch = "", 0, 0
        group.authorized_operations = Described().authorized_operations
        group.members, group.topology = [], None

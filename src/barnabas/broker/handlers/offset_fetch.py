"""OffsetFetch: the committed offsets of one group (up to version 7) or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.access.mapping import change_response
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, TOPIC, Need, Where, describe_shown_topics, each, group
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

BATCHED_SINCE = 8
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NEEDS = (
    group(Operation.DESCRIBE).up_to(BATCHED_SINCE - 1),
    each(GROUP, Operation.DESCRIBE, "groups.group_id", "groups").since(BATCHED_SINCE),
    Need(Operation.DESCRIBE, TOPIC, "topics.name", Where.ITEM).asked_by_handler(),
    describe_shown_topics,  # where all topics of a group are requested
)


@handles(OffsetFetchRequest, "1-10", needs=NEEDS)
def offset_fetch(request: OffsetFetchRequest, context: RequestContext) -> Any:
    rights = context.rights
    if rights is None:
        return fetch_offsets(request, context)
    hidden = hide_topics(request, context, rights)
    if not any(wants_all or refused for wants_all, refused in hidden):
        return fetch_offsets(request, context)
    return change_response(
        fetch_offsets(request, context),
        request.schema.key or 0,
        context,
        lambda response: show_refusals(response, hidden, context, rights),
    )


def fetch_offsets(request: OffsetFetchRequest, context: RequestContext) -> CombinedResponse | None:
    groups = request.groups
    if context.version < BATCHED_SINCE:
        return context.broker.groups.handle(request.group_id, request, context)
    if len(groups) == 1:
        return context.broker.groups.handle(groups[0].group_id, request, context)

    def part(indexes: list[int]) -> OffsetFetchRequest:
        return OffsetFetchRequest(
            groups=[groups[index] for index in indexes], require_stable=request.require_stable
        )

    split = Split(part, lambda response: response.groups, lambda found: OffsetFetchResponse(groups=found))
    return context.broker.groups.handle_by_key([group.group_id for group in groups], split, context)


# -- topics that the caller may not describe ---------------------------------------------------------

Hidden = list[tuple[bool, list[Any]]]
"""For each group: whether all its topics are requested, and the requested topics that are refused."""


def hide_topics(request: OffsetFetchRequest, context: RequestContext, rights: Rights) -> Hidden:
    """Take the topics out of the request that the caller may not describe."""
    hidden: Hidden = []
    asked: list[Any] = [request] if context.version < BATCHED_SINCE else request.groups
    for of_group in asked:
        if of_group.topics is None:
            hidden.append((True, []))
            continue
        kept: list[Any] = []
        refused: list[Any] = []
        for topic in of_group.topics:
            name = name_of(topic, context)
            may = name is None or rights.allow(Operation.DESCRIBE, TOPIC, name, context.api)
            (kept if may else refused).append(topic)
        of_group.topics = kept
        hidden.append((False, refused))
    return hidden


def name_of(topic: Any, context: RequestContext) -> str | None:
    """The topic's name; None for an id that is unknown: the response says so."""
    if context.version < TOPIC_IDS_SINCE:
        return str(topic.name)
    found = context.broker.image.topics.by_id.get(topic.topic_id)
    return found.name if found is not None else None


def show_refusals(
    response: OffsetFetchResponse, hidden: Hidden, context: RequestContext, rights: Rights
) -> None:
    """Add the errors of refused topics, and leave out topics that were not requested by name."""
    is_old = context.version < BATCHED_SINCE
    answered: list[Any] = [response] if is_old else response.groups
    topic_type: Any = OffsetFetchResponse.OffsetFetchResponseTopic
    partition_type: Any = topic_type.OffsetFetchResponsePartition
    if not is_old:
        topic_type = OffsetFetchResponse.OffsetFetchResponseGroup.OffsetFetchResponseTopics
        partition_type = topic_type.OffsetFetchResponsePartitions
    for (wants_all, refused), of_group in zip(hidden, answered, strict=False):
        if of_group.error_code:
            continue
        if wants_all:
            of_group.topics = [
                topic
                for topic in of_group.topics
                if (name := name_of(topic, context)) is None
                or rights.allow_quietly(Operation.DESCRIBE, TOPIC, name)
            ]
        for topic in refused:
            result = topic_type(
                name=topic.name,
                partitions=[
                    partition_type(partition_index=index, committed_offset=NO_OFFSET, error_code=REFUSED)
                    for index in topic.partition_indexes
                ],
            )
            if not is_old:
                result.topic_id = topic.topic_id
            of_group.topics = [*of_group.topics, result]

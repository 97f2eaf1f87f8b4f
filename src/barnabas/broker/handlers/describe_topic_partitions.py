"""DescribeTopicPartitions: topics with the state of their partitions, in pages (KIP-966)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, Need, Where, describe_shown_topics
from barnabas.broker.api.routes import handles
from barnabas.broker.quorum import topology
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = Topic.DescribeTopicPartitionsResponsePartition
PARTITIONS_A_STEP = 16


NEEDS = (
    Need(Operation.DESCRIBE, TOPIC, "topics.name", Where.ITEM, "topics").asked_by_handler(),
    describe_shown_topics,  # where all topics are requested
)


@handles(DescribeTopicPartitionsRequest, "0-0", needs=NEEDS)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> Awaitable[DescribeTopicPartitionsResponse]:
    return context.broker.pieces.run(describe(request, context))


def describe(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> Steps[DescribeTopicPartitionsResponse]:
    """Describe topics of one image. Changes during the steps show in the next response."""
    broker, image = context.broker, context.broker.image
    cursor = request.cursor
    first_topic = cursor.topic_name if cursor is not None else ""
    named = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        return DescribeTopicPartitionsResponse(
            topics=[Topic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name) for topic in request.topics]
        )
    asked = sorted(named or image.topics.by_name.keys())
    refused: list[str] = []
    if context.rights is not None:
        asked, refused = yield from split_by_right(asked, bool(named), context, context.rights)
    yield
    room = max(1, min(request.response_partition_limit, broker.settings["max.request.partition.size.limit"]))
    topics: list[Topic] = []
    following = None
    for name in asked:
        if name < first_topic:
            continue
        first = cursor.partition_index if cursor is not None and name == first_topic else 0
        if room <= 0:
            following = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=first)
            break
        found = image.topics.by_name.get(name)
        yield
        if found is None:
            topics.append(unknown_topic(name, context))
            continue
        last = min(first + room, len(found.partitions))
        topics.append((yield from describe_topic(found, range(max(first, 0), last), image, context)))
        room -= max(last - first, 0)
        if last < len(found.partitions):
            following = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=last)
            break
    topics += [Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name) for name in refused]
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=following)


def split_by_right(
    names: list[str], is_named: bool, context: RequestContext, rights: Rights
) -> Steps[tuple[list[str], list[str]]]:
    """The topics that the caller may describe, and those that it named and may not."""
    visible, refused = [], []
    for count, name in enumerate(names, 1):
        if is_named:
            may = rights.allow(Operation.DESCRIBE, TOPIC, name, context.api)
        else:
            may = rights.allow_quietly(Operation.DESCRIBE, TOPIC, name)
        if may:
            visible.append(name)
        elif is_named:
            refused.append(name)
        if not count % PARTITIONS_A_STEP:
            yield
    return visible, refused


def unknown_topic(name: str, context: RequestContext) -> Topic:
    from barnabas.controller.topic_names import reason_invalid

    valid = reason_invalid(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return Topic(
        error_code=code,
        name=name,
        is_internal=context.broker.is_internal(name),
        topic_authorized_operations=authorized.on_topic(context, name),
    )


def describe_topic(
    topic: TopicImage, indexes: range, image: MetadataImage, context: RequestContext
) -> Steps[Topic]:
    partitions = []
    for index in indexes:
        if not index % PARTITIONS_A_STEP:
            yield
        found = topic.partitions[index]
        partitions.append(
            Partition(
                error_code=ErrorCode.NONE if found.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=found.leader,
                leader_epoch=found.leader_epoch,
                replica_nodes=list(found.replicas),
                isr_nodes=list(found.isr),
                eligible_leader_replicas=list(found.elr),
                last_known_elr=list(found.last_known_elr),
                offline_replicas=topology.offline_replicas(image, found),
            )
        )
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in topology.INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=authorized.on_topic(context, topic.name),
    )

"""DescribeShareGroupOffsets: start offsets of share groups, and how many records they are behind (KIP-1226).

Share coordinators keep start offsets, and leaders of partitions know where those end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, TOPIC, Need, Where, describe_shown_topics, each
from barnabas.broker.api.routes import handles
from barnabas.broker.shares.end_offsets import EndOffsets, end_offsets
from barnabas.metadata.versions import SHARE_VERSION
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.security.acls.vocabulary import Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.broker import Broker

AskedGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = Group.DescribeShareGroupOffsetsResponseTopic
Partition = Topic.DescribeShareGroupOffsetsResponsePartition
Asked = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
Summary = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult.PartitionResult

NEEDS = (
    each(GROUP, Operation.DESCRIBE, "groups.group_id", "groups"),
    Need(Operation.DESCRIBE, TOPIC, "groups.topics", Where.ITEM).asked_by_handler(),
    describe_shown_topics,  # where all topics of a group are requested
)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = -1  # start offset, lag and count of records that are not known
GROUPS_AT_ONCE = 50


@handles(DescribeShareGroupOffsetsRequest, "0-1", needs=NEEDS)
def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, context: RequestContext
) -> DescribeShareGroupOffsetsResponse | Awaitable[DescribeShareGroupOffsetsResponse]:
    if not context.broker.image.features.level(SHARE_VERSION):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [Group(group_id=asked.group_id, error_code=code) for asked in request.groups]
        return DescribeShareGroupOffsetsResponse(groups=groups)
    return describe_all(context.broker, request.groups, context.rights, context.api)


async def describe_all(
    broker: Broker, asked: list[AskedGroup], rights: Rights | None, api: int
) -> DescribeShareGroupOffsetsResponse:
    groups: list[Group] = []
    for start in range(0, len(asked), GROUPS_AT_ONCE):
        some = asked[start : start + GROUPS_AT_ONCE]
        groups += await asyncio.gather(*(describe(broker, each, rights, api) for each in some))
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def describe(broker: Broker, asked: AskedGroup, rights: Rights | None, api: int) -> Group:
    """The offsets of one group. Topics that the caller may not describe are refused, or left out if it named
    none."""
    try:
        if asked.topics is None:
            found = await read(broker, asked.group_id, initialized(broker, asked.group_id))
            if rights is not None:
                found = [
                    each for each in found if rights.allow_quietly(Operation.DESCRIBE, TOPIC, each.topic_name)
                ]
            return Group(group_id=asked.group_id, topics=found)
        refused, unknown, topics = [], [], {}
        for topic in asked.topics:
            if rights is not None and not rights.allow(Operation.DESCRIBE, TOPIC, topic.topic_name, api):
                refused.append(not_described(topic.topic_name, topic.partitions, REFUSED))
            elif (known := broker.image.topics.by_name.get(topic.topic_name)) is not None:
                topics[known.id] = topic.partitions
            else:
                unknown.append(not_described(topic.topic_name, topic.partitions, ErrorCode.NONE))
        found = await read(broker, asked.group_id, topics)
    except KafkaError as error:
        return Group(group_id=asked.group_id, error_code=error.code, error_message=error.code.message)
    return Group(group_id=asked.group_id, topics=[*found, *unknown, *refused])


def not_described(name: str, partitions: Iterable[int], code: ErrorCode) -> Topic:
    return Topic(
        topic_name=name,
        partitions=[
            Partition(
                partition_index=index,
                start_offset=UNKNOWN,
                lag=UNKNOWN,
                error_code=code,
                error_message=code.message if code else None,
            )
            for index in partitions
        ],
    )


def initialized(broker: Broker, group_id: str) -> dict[bytes, list[int]]:
    """All partitions of a group that this broker coordinates. KafkaError: it does not."""
    host = broker.groups.host_of(group_id)
    if host is None:
        raise broker.groups.error_without_host(group_id)
    if host.error is not None:
        raise host.error.copy()
    partitions = host.shard.share.initialized_partitions(group_id)
    by_id = broker.image.topics.by_id
    return {topic_id: sorted(partitions[topic_id]) for topic_id in sorted(partitions) if topic_id in by_id}


async def read(broker: Broker, group_id: str, topics: dict[bytes, list[int]]) -> list[Topic]:
    """The offsets of partitions, as their share coordinators and their leaders know them."""
    if not topics:
        return []
    request = ReadShareGroupStateSummaryRequest(
        group_id=group_id,
        topics=[
            Asked(topic_id=id, partitions=[Asked.PartitionData(partition=index) for index in partitions])
            for id, partitions in topics.items()
        ],
    )
    response = await broker.share_persister.read_summary(request)
    by_id = broker.image.topics.by_id
    names = {id: by_id[id].name for id in topics if id in by_id}
    ends = await end_offsets(
        broker,
        [
            (names[result.topic_id], summary.partition)
            for result in response.results
            for summary in result.partitions
            if result.topic_id in names and has_lag(summary)
        ],
    )
    return [
        Topic(
            topic_id=result.topic_id,
            topic_name=names[result.topic_id],
            partitions=[described(names[result.topic_id], summary, ends) for summary in result.partitions],
        )
        for result in response.results
        if result.topic_id in names
    ]


def has_lag(summary: Summary) -> bool:
    """Whether the share coordinator knows where the group reads on, and what it has read beyond."""
    return (
        not summary.error_code
        and summary.start_offset != UNKNOWN
        and summary.delivery_complete_count != UNKNOWN
    )


def described(topic: str, summary: Summary, ends: EndOffsets) -> Partition:
    """A partition without state has no start offset; that is no error."""
    index = summary.partition
    if summary.error_code:
        return Partition(partition_index=index, start_offset=UNKNOWN, lag=UNKNOWN)
    result = Partition(
        partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch
    )
    if not has_lag(summary):
        result.lag = UNKNOWN
        return result
    end = ends[topic, index]
    if isinstance(end, ErrorCode):
        return Partition(partition_index=index, error_code=end, error_message=end.message)
    result.lag = end - summary.start_offset - summary.delivery_complete_count
    return result

"""End offsets of partitions, asked of their leaders, to compute how far share groups are behind.

In: topics and partitions. Out: the high watermark of each, or an error. Partitions of this broker are looked
up, others are asked with one ListOffsets request per leader.
Does not know: what the offsets are used for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

from barnabas.metadata.partitions import NO_LEADER
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from barnabas.quorum import lanes

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

LATEST = -1
CONSUMER = -1

Place = tuple[str, int]
EndOffsets = dict[Place, int | ErrorCode]
"""The end of each partition, or why it is not known."""


async def end_offsets(broker: Broker, places: Collection[Place]) -> EndOffsets:
    found: EndOffsets = {}
    by_leader: dict[int, list[Place]] = {}
    for place in places:
        registration = broker.image.topics.partition(*place)
        if registration is None:
            found[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif registration.leader == NO_LEADER:
            found[place] = ErrorCode.LEADER_NOT_AVAILABLE
        elif registration.leader == broker.node_id:
            found[place] = own_end_offset(broker, place)
        else:
            by_leader.setdefault(registration.leader, []).append(place)
    asked = [ask(broker, leader, some) for leader, some in by_leader.items()]
    for offsets in await asyncio.gather(*asked):
        found.update(offsets)
    return found


def own_end_offset(broker: Broker, place: Place) -> int | ErrorCode:
    try:
        partition = broker.partitions.leader(*place)
    except KafkaError as error:
        return error.code
    if partition.high_watermark < partition.state.epoch_start_offset:
        return ErrorCode.OFFSET_NOT_AVAILABLE  # a new leader does not know yet what is committed
    return partition.high_watermark


async def ask(broker: Broker, leader: int, places: list[Place]) -> EndOffsets:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, index in places:
        topic = topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name))
        topic.partitions.append(
            ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        )
    request = ListOffsetsRequest(replica_id=CONSUMER, topics=list(topics.values()))
    found: EndOffsets = dict.fromkeys(places, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        response = await broker.others.send_request(leader, request, lanes.END_OFFSETS)
    except KafkaError as error:
        return dict.fromkeys(places, error.code)
    for result in response.topics:
        for partition in result.partitions:
            code = ErrorCode(partition.error_code)
            found[result.name, partition.partition_index] = code if code else partition.offset
    return found

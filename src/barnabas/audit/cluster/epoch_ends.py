"""Asks leaders where a leader epoch ends in their logs (OffsetForLeaderEpoch).

In: a client, partitions with an epoch. Out: the offset behind the last record of that epoch, or of those
before it. None where it is not known, or the leader has moved. Does not know: counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.core.asking import ask_leaders
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import error_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


async def epoch_ends(
    cluster: ClusterCore, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    async def ask(
        leader: Node, some: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError | None]:
        connection = await cluster.connection_to(leader.address)
        version = connection.version_for(OffsetForLeaderEpochRequest)
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                Topic(
                    topic=name,
                    partitions=[
                        Topic.OffsetForLeaderPartition(partition=each.partition, leader_epoch=some[each])
                        for each in places
                    ],
                )
                for name, places in by_topic(some).items()
            ],
        )
        response = await connection.send(request, OffsetForLeaderEpochResponse, version=version)
        return {
            TopicPartition(topic.topic, each.partition): (
                error_of(each.error_code)
                if each.error_code
                else (each.end_offset if each.end_offset >= 0 else None)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    found = await ask_leaders(cluster, epochs, ask)
    return {place: None if isinstance(end, KafkaError) else end for place, end in found.items()}

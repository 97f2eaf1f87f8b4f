"""Offsets by time: the first, the last, the one of the largest timestamp, or the first at or after a moment.

In: a Cluster, partitions with what is wanted of each. Out: offsets, or the error of each partition that has
one; leaders are asked, each once, and asked again when they moved.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.asking import ask_leaders
from barnabas.client.core.errors import UnsupportedApi, error_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

CONSUMER_REPLICA_ID = -1
NO_OFFSET = -1


class OffsetSpec(IntEnum):
    """Meanings of the negative timestamps of ListOffsets."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


VERSION_NEEDED = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """`offset` is -1 when no record is that young."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


class OffsetAdmin(AdminPart):
    async def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, FoundOffset | KafkaError]:
        """Find an offset for each partition; `wanted` maps it to an OffsetSpec or a timestamp in ms."""
        question = functools.partial(self._ask_leader, read_committed)
        return await ask_leaders(self.cluster, wanted, question, timeout_ms=timeout_ms)

    async def _ask_leader(
        self, read_committed: bool, leader: Node, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset | KafkaError]:
        connection = await self.cluster.connection_to(leader.address)
        version = connection.version_for(ListOffsetsRequest)
        for spec in set(wanted.values()):
            if spec in VERSION_NEEDED and version < VERSION_NEEDED[OffsetSpec(spec)]:
                name = f"ListOffsets for {OffsetSpec(spec).name.lower().replace('_', '-')}"
                raise UnsupportedApi(
                    connection.address, name, f"it speaks ListOffsets up to version {version}"
                )
        nested = ListOffsetsRequest.ListOffsetsTopic
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=int(read_committed),
            topics=[
                nested(
                    name=name,
                    partitions=[
                        nested.ListOffsetsPartition(
                            partition_index=each.partition, timestamp=int(wanted[each])
                        )
                        for each in some
                    ],
                )
                for name, some in by_topic(wanted).items()
            ],
        )
        if version >= 10:
            request.timeout_ms = self.timeout_ms
        response = await connection.send(request, ListOffsetsResponse, version=version)
        return {
            TopicPartition(topic.name, each.partition_index): (
                error_of(each.error_code)
                if each.error_code
                else FoundOffset(each.offset, each.timestamp, each.leader_epoch)
            )
            for topic in response.topics
            for each in topic.partitions
        }

"""Offsets by time: the first, the last, the one of the largest timestamp, or the first at or after a moment.

In: a Cluster, partitions with what is wanted of each. Out: offsets, or the error of each partition that has
one; leaders are asked, each once, and asked again when they moved.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.cluster import Cluster, error_of
from barnabas.client.errors import Unreachable, UnsupportedApi
from barnabas.client.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

CONSUMER_REPLICA_ID = -1
NO_OFFSET = -1


class OffsetSpec(IntEnum):
    """What the negative timestamps of ListOffsets mean."""

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


class OffsetAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, FoundOffset | KafkaError]:
        """What is found for each partition; `wanted` maps it to an OffsetSpec or a timestamp in ms."""
        found: dict[TopicPartition, FoundOffset | KafkaError] = {}
        patience = self.cluster.patience(timeout_ms)
        left = dict(wanted)
        while left:
            problem: KafkaError | Unreachable | None = None
            for leader, partitions in (await self._by_leader(left, found)).items():
                try:
                    answers = await self._ask(leader, partitions, read_committed)
                except Unreachable as error:
                    problem = error
                    continue
                for where, answer in answers.items():
                    if isinstance(answer, KafkaError) and answer.code.retriable:
                        problem = answer
                    else:
                        found[where] = answer
            left = {where: spec for where, spec in left.items() if where not in found}
            if not left:
                break
            self.cluster.forget_leaders({where.topic for where in left})
            try:
                await patience.pause(problem or KafkaError(ErrorCode.LEADER_NOT_AVAILABLE))
            except KafkaError as error:
                found.update(dict.fromkeys(left, error))
                break
        return found

    async def _by_leader(
        self, wanted: Mapping[TopicPartition, int], found: dict[TopicPartition, FoundOffset | KafkaError]
    ) -> dict[Node, dict[TopicPartition, int]]:
        unknown = {where.topic for where in wanted if self.cluster.topology.leader(where) is None}
        if unknown:
            await self.cluster.retrying(lambda: self.cluster.refresh(unknown))
        grouped: dict[Node, dict[TopicPartition, int]] = {}
        for where, spec in wanted.items():
            leader = self.cluster.topology.leader(where)
            topic = self.cluster.topology.topics.get(where.topic)
            if leader is not None:
                grouped.setdefault(leader, {})[where] = spec
            elif topic is None or topic.error_code or where.partition not in topic.partitions:
                found[where] = error_of(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {where} does not exist"
                )
        return grouped

    async def _ask(
        self, leader: Node, wanted: Mapping[TopicPartition, int], read_committed: bool
    ) -> dict[TopicPartition, FoundOffset | KafkaError]:
        connection = await self.cluster.connection_to(leader.address)
        version = connection.version_for(ListOffsetsRequest)
        for spec in set(wanted.values()):
            if spec in VERSION_NEEDED and version < VERSION_NEEDED[OffsetSpec(spec)]:
                name = f"ListOffsets for {OffsetSpec(spec).name.lower().replace('_', '-')}"
                raise UnsupportedApi(
                    connection.address, name, f"it speaks ListOffsets up to version {version}"
                )
        topics: dict[str, list[ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition]] = {}
        for where, spec in wanted.items():
            asked = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                partition_index=where.partition, timestamp=int(spec)
            )
            topics.setdefault(where.topic, []).append(asked)
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=int(read_committed),
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        if version >= 10:
            request.timeout_ms = int(self.cluster.request_timeout_ms)
        answer = await connection.send(request, ListOffsetsResponse, version=version)
        return {
            TopicPartition(topic.name, each.partition_index): (
                error_of(each.error_code)
                if each.error_code
                else FoundOffset(each.offset, each.timestamp, each.leader_epoch)
            )
            for topic in answer.topics
            for each in topic.partitions
        }

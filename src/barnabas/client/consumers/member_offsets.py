"""Committed offsets of a group, read and written by one of its members or by a consumer without membership.

In: a cluster, the group, and the identity of the member at that moment. Out: committed offsets; KafkaError
when the coordinator refuses. Does not know: positions, when to commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.group_offsets import BATCHED_SINCE, BY_NAME_MAX, Committed, CommittedOffset
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.coordinators import Coordinators
from barnabas.client.core.errors import error_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

STABLE_SINCE = 7  # version of OffsetFetch: waits for transactions that commit offsets

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup


@dataclass(frozen=True, slots=True)
class Identity:
    """A member in one generation. A consumer that is no member has none of it."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


class MemberOffsets:
    def __init__(self, cluster: ClusterCore, group_id: str, timeout_ms: float | None = None) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._coordinators = Coordinators(cluster, timeout_ms=timeout_ms)

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset], identity: Identity) -> None:
        """Commit; the first partition that is refused raises its error."""
        part = CommitTopic.OffsetCommitRequestPartition
        topics = [
            CommitTopic(
                name=name,
                partitions=[
                    part(
                        partition_index=each.partition,
                        committed_offset=offsets[each].offset,
                        committed_leader_epoch=offsets[each].leader_epoch,
                        committed_metadata=offsets[each].metadata,
                    )
                    for each in some
                ],
            )
            for name, some in by_topic(offsets).items()
        ]
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            topics=topics,
        )

        async def question(node: Node) -> None:
            connection = await self._cluster.connection_to(node.address)
            response = await connection.send(request, OffsetCommitResponse, version_max=BY_NAME_MAX)
            for topic in response.topics:
                for each in topic.partitions:
                    if each.error_code:
                        error = error_of(each.error_code)
                        name = f"{topic.name}-{each.partition_index}"
                        raise error_of(
                            each.error_code,
                            f"the offset of {name} is not committed for group {self._group_id}: "
                            f"{error.code.message}",
                        )

        if offsets:
            await self._coordinators.ask_one(self._group_id, question)

    async def committed(self, partitions: Iterable[TopicPartition]) -> Committed:
        """The committed offsets of these partitions; those without one are left out."""
        wanted = by_topic(partitions)

        async def question(node: Node) -> Committed:
            connection = await self._cluster.connection_to(node.address)
            version = connection.version_for(OffsetFetchRequest, BY_NAME_MAX)
            indexes = {name: [each.partition for each in some] for name, some in wanted.items()}
            if version < BATCHED_SINCE:
                old = OffsetFetchRequest.OffsetFetchRequestTopic
                request = OffsetFetchRequest(
                    group_id=self._group_id,
                    topics=[old(name=name, partition_indexes=some) for name, some in indexes.items()],
                )
            else:
                new = FetchGroup.OffsetFetchRequestTopics
                asked = [new(name=name, partition_indexes=some) for name, some in indexes.items()]
                request = OffsetFetchRequest(groups=[FetchGroup(group_id=self._group_id, topics=asked)])
            if version >= STABLE_SINCE:
                request.require_stable = True
            response = await connection.send(request, OffsetFetchResponse, version=version)
            return read_committed_offsets(response)

        return await self._coordinators.ask_one(self._group_id, question) if wanted else {}


def read_committed_offsets(response: OffsetFetchResponse) -> Committed:
    code = response.groups[0].error_code if response.groups else response.error_code
    if code:
        raise error_of(code)
    found: Committed = {}
    topics = response.groups[0].topics if response.groups else response.topics
    for topic in topics:
        for each in topic.partitions:
            if each.error_code:
                raise error_of(each.error_code)
            if each.committed_offset >= 0:
                topic_partition = TopicPartition(topic.name, each.partition_index)
                offset, epoch = each.committed_offset, each.committed_leader_epoch
                found[topic_partition] = CommittedOffset(offset, epoch, each.metadata or "")
    return found

"""The offsets that groups committed: read, write and delete them from outside the group.

In: a Cluster. Out: offsets by partition, or the error of each partition or group.
Does not know: members; a coordinator refuses what members must not be surprised by.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.coordinators import Results
from barnabas.client.core.errors import check, error_of, problem_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

BY_NAME_MAX = 9  # newer versions of OffsetFetch and OffsetCommit know topics by id only
BATCHED_SINCE = 8  # version of OffsetFetch
COORDINATOR_MOVED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)

OldTopics = Sequence[OffsetFetchResponse.OffsetFetchResponseTopic]
NewTopics = Sequence[OffsetFetchResponse.OffsetFetchResponseGroup.OffsetFetchResponseTopics]
CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
DeleteTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Committed = dict[TopicPartition, CommittedOffset]


class GroupOffsetAdmin(AdminPart):
    async def committed_offsets(self, group: str) -> Committed:
        """Every offset that a group committed; a group that nobody knows has none."""
        result = (await self.committed_offsets_of([group]))[group]
        if isinstance(result, KafkaError):
            raise result
        return result

    async def committed_offsets_of(self, groups: Iterable[str]) -> dict[str, Committed | KafkaError]:
        return await self.coordinators.ask(groups, self._fetch)

    async def _fetch(self, node: Node, groups: list[str]) -> Results[Committed]:
        connection = await self.cluster.connection_to(node.address)
        version = connection.version_for(OffsetFetchRequest, BY_NAME_MAX)
        if version < BATCHED_SINCE:
            found: dict[str, Committed | KafkaError] = {}
            for group in groups:
                single = OffsetFetchRequest(group_id=group, topics=None)
                response = await connection.send(single, OffsetFetchResponse, version=version)
                found[group] = read_offsets(response.error_code, response.topics)
            return found
        asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
        response = await connection.send(
            OffsetFetchRequest(groups=asked), OffsetFetchResponse, version=version
        )
        return {each.group_id: read_offsets(each.error_code, each.topics) for each in response.groups}

    async def alter_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        metadata: Mapping[TopicPartition, str] | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit offsets, some with metadata, for a group without members."""
        texts = metadata or {}

        async def question(node: Node) -> dict[TopicPartition, KafkaError | None]:
            part = CommitTopic.OffsetCommitRequestPartition
            topics = [
                CommitTopic(
                    name=name,
                    partitions=[
                        part(
                            partition_index=each.partition,
                            committed_offset=offsets[each],
                            committed_metadata=texts.get(each, ""),
                        )
                        for each in some
                    ],
                )
                for name, some in by_topic(offsets).items()
            ]
            request = OffsetCommitRequest(group_id=group, topics=topics)
            connection = await self.cluster.connection_to(node.address)
            response = await connection.send(request, OffsetCommitResponse, version_max=BY_NAME_MAX)
            return by_partition(
                (TopicPartition(topic.name, each.partition_index), each.error_code)
                for topic in response.topics
                for each in topic.partitions
            )

        return await self.coordinators.ask_one(group, question)

    async def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        part = DeleteTopic.OffsetDeleteRequestPartition
        topics = [
            DeleteTopic(name=name, partitions=[part(partition_index=each.partition) for each in some])
            for name, some in by_topic(partitions).items()
        ]
        request = OffsetDeleteRequest(group_id=group, topics=topics)

        async def question(node: Node) -> dict[TopicPartition, KafkaError | None]:
            connection = await self.cluster.connection_to(node.address)
            response = await connection.send(request, OffsetDeleteResponse)
            check(response.error_code)
            return by_partition(
                (TopicPartition(topic.name, each.partition_index), each.error_code)
                for topic in response.topics
                for each in topic.partitions
            )

        return await self.coordinators.ask_one(group, question)


def read_offsets(code: int, topics: OldTopics | NewTopics) -> Committed | KafkaError:
    """The offsets of one group; a partition without one, or with an error of its own, is left out."""
    if code:
        return error_of(code)
    return {
        TopicPartition(topic.name, each.partition_index): CommittedOffset(
            each.committed_offset, each.committed_leader_epoch, each.metadata or ""
        )
        for topic in topics
        for each in topic.partitions
        if not each.error_code and each.committed_offset >= 0
    }


def by_partition(results: Iterable[tuple[TopicPartition, int]]) -> dict[TopicPartition, KafkaError | None]:
    """The error of each partition; one that the coordinator moved is the whole request's."""
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic_partition, code in results:
        error = problem_of(code)
        if error is not None and error.code in COORDINATOR_MOVED:
            raise error
        found[topic_partition] = error
    return found

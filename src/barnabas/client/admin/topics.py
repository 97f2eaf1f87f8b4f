"""Topics as an administrator sees them: list, describe, create, delete, more partitions.

In: a Cluster. Out: frozen values; an error code is raised as KafkaError with the broker's message.
Brokers older than DescribeTopicPartitions are asked by Metadata instead, which does not know the ELR.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import UnsupportedApi, check
from barnabas.client.core.topology import NO_LEADER, TopicPartition, by_topic
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

PARTITIONS_PER_RESPONSE = 2_000
PAGES_MAX = 100_000
BROKER_DEFAULT = -1
OPERATIONS_UNKNOWN = -(2**31)

TopicResponse = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


@dataclass(frozen=True, slots=True)
class TopicListing:
    name: str
    topic_id: bytes
    internal: bool


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    topic_id: bytes
    internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: int | None = None  # a bit for each operation; None where the broker does not tell


@dataclass(frozen=True, slots=True)
class TopicCursor:
    """The position at which the next page of a long description begins."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Descriptions of some topics. The partitions of the last one may go on in the next page."""

    topics: tuple[TopicDescription, ...]
    following: TopicCursor | None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """`assignments` names the replicas of each partition; otherwise counts, or the broker's defaults."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[Sequence[int]] = ()
    configs: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Reassignment:
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class TopicAdmin(AdminPart):
    async def list_topics(self, *, internal: bool = True) -> list[TopicListing]:
        topology = await self.cluster.retrying(lambda: self.cluster.refresh(None))
        return [
            TopicListing(topic.name, topic.topic_id, topic.internal)
            for _, topic in sorted(topology.topics.items())
            if internal or not topic.internal
        ]

    async def describe_topics(
        self, names: Iterable[str], partitions_per_response: int = PARTITIONS_PER_RESPONSE
    ) -> list[TopicDescription]:
        """Descriptions in the order of the topics' names; a missing topic raises."""
        wanted = sorted(set(names))
        if not wanted:
            return []
        try:
            return await self._describe_by_pages(wanted, partitions_per_response)
        except UnsupportedApi:
            return await self._describe_by_metadata(wanted)

    async def describe_all_topics(
        self, cursor: TopicCursor | None = None, partitions_per_response: int = PARTITIONS_PER_RESPONSE
    ) -> TopicPage:
        """One page of all topics, in the order of their names; topics that are being deleted are left out."""
        asked = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=partitions_per_response)
        if cursor is not None:
            asked.cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=cursor.topic, partition_index=cursor.partition
            )
        try:
            response = await self.ask(asked, DescribeTopicPartitionsResponse)
        except UnsupportedApi:
            names = [topic.name for topic in await self.list_topics()]
            return TopicPage(tuple(await self._describe_by_metadata(names)), None)
        following = response.next_cursor
        return TopicPage(
            tuple(description_of(topic) for topic in response.topics if not topic.error_code),
            None if following is None else TopicCursor(following.topic_name, following.partition_index),
        )

    async def _describe_by_pages(self, names: list[str], limit: int) -> list[TopicDescription]:
        found: dict[str, TopicDescription] = {}
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None
        for _ in range(PAGES_MAX):
            request = DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
                response_partition_limit=limit,
                cursor=cursor,
            )
            response = await self.ask(request, DescribeTopicPartitionsResponse)
            for topic in response.topics:
                check(topic.error_code, f"topic {topic.name}: {ErrorCode(topic.error_code).name}")
                part = description_of(topic)
                earlier = found.get(part.name)
                if earlier is not None:
                    part = replace(part, partitions=earlier.partitions + part.partitions)
                found[part.name] = part
            if response.next_cursor is None:
                break
            following = response.next_cursor
            cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=following.topic_name, partition_index=following.partition_index
            )
            names = [name for name in names if name >= following.topic_name]
        return list(found.values())

    async def _describe_by_metadata(self, names: list[str]) -> list[TopicDescription]:
        topology = await self.cluster.retrying(lambda: self.cluster.refresh(names))
        described = []
        for name in names:
            topic = topology.topics[name]
            check(topic.error_code, f"topic {name}: {ErrorCode(topic.error_code).name}")
            partitions = tuple(
                PartitionDescription(index, known_leader(each.leader), each.replicas, each.isr)
                for index, each in sorted(topic.partitions.items())
            )
            described.append(TopicDescription(name, topic.topic_id, topic.internal, partitions))
        return described

    async def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic id, if there is such a topic."""
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(topic_id=topic_id, name=None)],
            allow_auto_topic_creation=False,
        )
        response = await self.ask(request, MetadataResponse)
        [topic] = response.topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
            return None
        check(topic.error_code)
        return topic.name

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> bytes:
        """Create one topic and return its id."""
        creatable = CreateTopicsRequest.CreatableTopic(
            name=topic.name,
            num_partitions=BROKER_DEFAULT if topic.assignments else topic.partitions,
            replication_factor=BROKER_DEFAULT if topic.assignments else topic.replication_factor,
            assignments=[
                CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment(
                    partition_index=index, broker_ids=list(replicas)
                )
                for index, replicas in enumerate(topic.assignments)
            ],
            configs=[
                CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name=name, value=value)
                for name, value in (topic.configs or {}).items()
            ],
        )
        timeout_ms = self.timeout_ms
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=timeout_ms, validate_only=validate_only)
        final = [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        response = await self.ask(
            request, CreateTopicsResponse, results=lambda response: response.topics, final=final
        )
        return response.topics[0].topic_id

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics; the first error is raised when all of them were tried."""
        wanted = list(names)
        if not wanted:
            return
        topics = [DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=NULL_UUID) for name in wanted]
        by_state = DeleteTopicsRequest(topics=topics, timeout_ms=self.timeout_ms)
        by_name = DeleteTopicsRequest(topic_names=wanted, timeout_ms=self.timeout_ms)
        connection = await self.cluster.any_connection()
        request = by_state if connection.version_for(DeleteTopicsRequest) >= 6 else by_name
        response = await connection.send(request, DeleteTopicsResponse)
        self.cluster.forget_leaders(wanted)
        for result in response.responses:
            check(result.error_code, result.error_message)

    async def create_partitions(
        self, totals: Mapping[str, int], assignments: Mapping[str, Sequence[Sequence[int]]] | None = None
    ) -> None:
        """Raise topics to a total number of partitions; `assignments` are the replicas of the new ones."""
        nested = CreatePartitionsRequest.CreatePartitionsTopic
        topics = []
        for name, total in totals.items():
            replicas = (assignments or {}).get(name)
            chosen = (
                None
                if replicas is None
                else [nested.CreatePartitionsAssignment(broker_ids=list(each)) for each in replicas]
            )
            topics.append(nested(name=name, count=total, assignments=chosen))
        request = CreatePartitionsRequest(topics=topics, timeout_ms=self.timeout_ms)
        response = await self.cluster.ask(request, CreatePartitionsResponse)
        self.cluster.forget_leaders(totals)
        for result in response.results:
            check(result.error_code, result.error_message)

    async def reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Partitions whose replicas are being moved; none where the broker cannot tell."""
        try:
            return await self.list_reassignments()
        except UnsupportedApi:
            return {}
        except KafkaError as error:
            if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return {}

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The partitions among these (None: among all) whose replicas are being moved."""
        nested = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
        asked = (
            None
            if partitions is None
            else [
                nested(name=name, partition_indexes=[topic_partition.partition for topic_partition in some])
                for name, some in by_topic(partitions).items()
            ]
        )
        request = ListPartitionReassignmentsRequest(topics=asked, timeout_ms=self.timeout_ms)
        response = await self.cluster.ask(request, ListPartitionReassignmentsResponse)
        check(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }


def known_leader(leader: int) -> int | None:
    return None if leader == NO_LEADER else leader


def description_of(topic: TopicResponse) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            each.partition_index,
            known_leader(each.leader_id),
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            None if each.eligible_leader_replicas is None else tuple(each.eligible_leader_replicas),
            None if each.last_known_elr is None else tuple(each.last_known_elr),
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    )
    operations = topic.topic_authorized_operations
    return TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        partitions,
        None if operations == OPERATIONS_UNKNOWN else operations,
    )

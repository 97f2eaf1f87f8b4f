"""OffsetCommit, OffsetFetch and OffsetDelete: topics looked up, every partition answered.

In: a request that the group allows, the offsets, the topics that exist. Out: records and the answer. From
version 10 on topics are named by id. Does not know: members and generations, who may read which topic.
"""

from __future__ import annotations

from barnabas.groups.kind import PartitionCheck
from barnabas.groups.offsets import NO_EXPIRY, Offsets, tombstone
from barnabas.groups.records import Entry
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

TOPIC_ID_VERSION = 10
NO_OFFSET = -1
NO_RETENTION_TIME = -1
BYTES_A_COMMIT = 64  # of a record, beside its texts
TOPIC_NAME_MAX = 249
INT64_MAX = 2**63 - 1

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
CommitPartition = CommitTopic.OffsetCommitRequestPartition
CommittedTopic = OffsetCommitResponse.OffsetCommitResponseTopic
CommittedPartition = CommittedTopic.OffsetCommitResponsePartition
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
FetchTopics = FetchGroup.OffsetFetchRequestTopics
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopics = FetchedGroup.OffsetFetchResponseTopics
FetchedPartition = FetchedTopics.OffsetFetchResponsePartitions
DeletedTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
DeletedPartition = DeletedTopic.OffsetDeleteResponsePartition


class NeverFound(dict[str | bytes, CommittedTopic]):
    """Remembers nothing."""

    def __setitem__(self, name: str | bytes, answer: CommittedTopic) -> None:
        pass


class Commit:
    """One OffsetCommit: what cannot be committed is answered first, as Kafka does."""

    __slots__ = ("_answers", "accepted", "request", "response")

    def __init__(self, request: OffsetCommitRequest, version: int, topics: TopicsImage) -> None:
        self.request = request
        self.response = OffsetCommitResponse()
        self._answers: dict[str | bytes, CommittedTopic] = {}
        self.accepted: list[tuple[CommitTopic, TopicImage, list[CommitPartition]]] = []
        uses_ids = version >= TOPIC_ID_VERSION
        for topic in request.topics:
            found = topics.by_id.get(topic.topic_id) if uses_ids else topics.by_name.get(topic.name)
            if found is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID if uses_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                self.answer(topic, topic.partitions, error)
                continue
            known = found.partitions
            partitions = topic.partitions
            for partition in partitions:
                if partition.partition_index not in known:
                    unknown = [each for each in partitions if each.partition_index not in known]
                    self.answer(topic, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    partitions = [each for each in partitions if each.partition_index in known]
                    break
            if partitions:
                self.accepted.append((topic, found, partitions))

    def answer(self, topic: CommitTopic, partitions: list[CommitPartition], error: ErrorCode) -> None:
        answer = self._answer_of(topic)
        for partition in partitions:
            answer.partitions.append(
                CommittedPartition(partition_index=partition.partition_index, error_code=error)
            )

    def _answer_of(self, topic: CommitTopic) -> CommittedTopic:
        name = topic.name if topic.topic_id == NULL_UUID else topic.topic_id
        answer = self._answers.get(name)
        if answer is None:
            answer = self._answers[name] = CommittedTopic(name=topic.name, topic_id=topic.topic_id)
            self.response.topics.append(answer)
        return answer

    def _separate(self) -> None:
        """A topic named twice is answered twice, as Kafka does, unless something was refused before."""
        if not self.response.topics:
            self._answers = NeverFound()

    def refuse(self, error: ErrorCode) -> OffsetCommitResponse:
        """Nothing is committed: every partition that could have been is answered with the error."""
        self._separate()
        for topic, _, partitions in self.accepted:
            self.answer(topic, partitions, error)
        return self.response

    def fits(self, bytes_max: int, metadata_bytes_max: int) -> bool:
        """Whether the records go into one batch, which they surely do when they are few."""
        size = BYTES_A_COMMIT + len(self.request.group_id)
        count = 0
        for _, _, partitions in self.accepted:
            count += len(partitions)
        if count * (size + TOPIC_NAME_MAX + 3 * metadata_bytes_max) <= bytes_max:
            return True
        needed = sum(
            size + len(found.name) + 3 * len(partition.committed_metadata or "")
            for _, found, partitions in self.accepted
            for partition in partitions
        )
        return needed <= bytes_max

    def first_error(self, check: PartitionCheck) -> ErrorCode:
        """What is wrong with the first partition that may not be committed: then none is, as in Kafka."""
        for _, found, partitions in self.accepted:
            for partition in partitions:
                error = check(found.id, partition.partition_index)
                if error:
                    return error
        return ErrorCode.NONE

    def records(self, metadata_bytes_max: int, now_ms: int) -> list[Entry]:
        """The records of what is accepted, with the answers to them."""
        self._separate()
        records = []
        request = self.request
        group_id = request.group_id
        retention_ms = request.retention_time_ms
        expires_ms = NO_EXPIRY
        if retention_ms != NO_RETENTION_TIME:
            expires_ms = min(max(now_ms + retention_ms, 0), INT64_MAX)
        for topic, found, partitions in self.accepted:
            answers = self._answer_of(topic).partitions
            for partition in partitions:
                index = partition.partition_index
                metadata = partition.committed_metadata or ""
                if len(metadata) > metadata_bytes_max:
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    answers.append(CommittedPartition(partition_index=index, error_code=error))
                    continue
                answers.append(CommittedPartition(partition_index=index))
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now_ms,
                    expire_timestamp=expires_ms,
                    topic_id=found.id if expires_ms == NO_EXPIRY else NULL_UUID,  # one of them is written
                )
                key = OffsetCommitKey(group=group_id, topic=found.name, partition=index)
                records.append(Entry(key, value))
        return records


# Fetching


def asked_groups(request: OffsetFetchRequest, version: int) -> list[FetchGroup]:
    """The groups of a request; before version 8 there is one."""
    if version >= 8:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            FetchTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [FetchGroup(group_id=request.group_id, topics=topics)]


def fetch_response(groups: list[FetchedGroup], version: int) -> OffsetFetchResponse:
    """The answer in the form of the version."""
    if version >= 8:
        return OffsetFetchResponse(groups=groups)
    [group] = groups
    old = OffsetFetchResponse.OffsetFetchResponseTopic
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            old(
                name=topic.name,
                partitions=[
                    old.OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def fetch_group(
    offsets: Offsets, asked: FetchGroup, topics: TopicsImage, *, uses_ids: bool, is_stable: bool
) -> FetchedGroup:
    """Offsets of one group: those asked for, or all."""
    group_id = asked.group_id
    answer = FetchedGroup(group_id=group_id)
    if asked.topics is None:
        for name, partitions in offsets.of_group(group_id).items():
            topic_id = NULL_UUID
            if uses_ids:
                found = topics.by_name.get(name)
                if found is None:
                    continue  # the topic is gone: there is no id to name it by
                topic_id = found.id
            told = [fetched(offsets, group_id, name, index, is_stable) for index in sorted(partitions)]
            answer.topics.append(FetchedTopics(name=name, topic_id=topic_id, partitions=told))
        return answer
    for topic in asked.topics:
        name = topic.name
        told = []
        if uses_ids:
            found = topics.by_id.get(topic.topic_id)
            if found is None:
                told = [
                    FetchedPartition(
                        partition_index=index,
                        committed_offset=NO_OFFSET,
                        error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                    )
                    for index in topic.partition_indexes
                ]
                answer.topics.append(FetchedTopics(topic_id=topic.topic_id, partitions=told))
                continue
            name = found.name
        told = [fetched(offsets, group_id, name, index, is_stable) for index in topic.partition_indexes]
        answer.topics.append(FetchedTopics(name=name, topic_id=topic.topic_id, partitions=told))
    return answer


def fetched(offsets: Offsets, group_id: str, topic: str, partition: int, is_stable: bool) -> FetchedPartition:
    if is_stable and offsets.is_pending(group_id, topic, partition):
        return FetchedPartition(
            partition_index=partition,
            committed_offset=NO_OFFSET,
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
        )
    value = offsets.get(group_id, topic, partition)
    if value is None:
        return FetchedPartition(partition_index=partition, committed_offset=NO_OFFSET)
    return FetchedPartition(
        partition_index=partition,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


# Deleting


class Deletion:
    """One OffsetDelete; topics that members still read keep their offsets."""

    __slots__ = ("_answers", "accepted", "group_id", "response")

    def __init__(self, request: OffsetDeleteRequest, topics: TopicsImage) -> None:
        self.group_id = request.group_id
        self.response = OffsetDeleteResponse()
        self._answers: dict[str, DeletedTopic] = {}
        self.accepted: list[tuple[str, int]] = []
        for topic in request.topics:
            for partition in topic.partitions:
                if topics.partition(topic.name, partition.partition_index) is None:
                    self.answer(topic.name, partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                else:
                    self.accepted.append((topic.name, partition.partition_index))

    def answer(self, topic: str, partition: int, error: ErrorCode) -> None:
        answer = self._answers.get(topic)
        if answer is None:
            answer = self._answers[topic] = DeletedTopic(name=topic)
            self.response.topics.append(answer)
        answer.partitions.append(DeletedPartition(partition_index=partition, error_code=error))

    def records(self, offsets: Offsets, subscribed: set[str]) -> list[Entry]:
        records = []
        for topic, partition in self.accepted:
            if topic in subscribed:
                self.answer(topic, partition, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            self.answer(topic, partition, ErrorCode.NONE)
            is_pending = offsets.is_pending(self.group_id, topic, partition)
            if is_pending or offsets.get(self.group_id, topic, partition) is not None:
                records.append(tombstone(self.group_id, topic, partition))
        return records

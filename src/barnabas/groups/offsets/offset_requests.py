"""OffsetFetch and OffsetDelete: look up topics, make the result of every partition, in steps of bounded work.

In: a request that the group allows, the offsets, the existing topics. Out: records and the response. From
version 10 on topics are named by id.
Does not know: members and generations, authorization.
"""

from __future__ import annotations

from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.steps import PORTION, portions
from barnabas.groups.offsets.offsets import Offsets, tombstone
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicsImage
from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

BATCHED_VERSION = 8  # of OffsetFetch: several groups
TOPIC_ID_VERSION = 10
NO_OFFSET = -1

FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
FetchTopics = FetchGroup.OffsetFetchRequestTopics
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopics = FetchedGroup.OffsetFetchResponseTopics
FetchedPartition = FetchedTopics.OffsetFetchResponsePartitions
OldFetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopic
OldFetchedPartition = OldFetchedTopic.OffsetFetchResponsePartition
DeletedTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
DeletedPartition = DeletedTopic.OffsetDeleteResponsePartition


# Fetching


def is_long_fetch(request: OffsetFetchRequest, offsets: Offsets) -> bool:
    """Whether the request names more than a portion of partitions, topics or groups."""
    count = len(request.groups)
    for group in request.groups:
        if group.topics is None:
            count += offsets.count_of(group.group_id)
        else:
            count += sum(1 + len(topic.partition_indexes) for topic in group.topics)
    if request.topics is not None:
        count += sum(1 + len(topic.partition_indexes) for topic in request.topics)
    elif request.group_id:
        count += offsets.count_of(request.group_id)
    return count > PORTION


def requested_groups(request: OffsetFetchRequest, version: int) -> list[FetchGroup]:
    """The groups of a request; before version 8 there is one."""
    if version >= BATCHED_VERSION:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            FetchTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [FetchGroup(group_id=request.group_id, topics=topics)]


def fetch_response(groups: list[FetchedGroup], version: int) -> OffsetFetchResponse:
    """The response in the form of the version; before version 8 it holds the topics of one group, see
    `OffsetReader`."""
    if version >= BATCHED_VERSION:
        return OffsetFetchResponse(groups=groups)
    [group] = groups
    return OffsetFetchResponse(error_code=group.error_code, topics=group.topics)  # type: ignore[arg-type]


class OffsetReader:
    """Reads offsets of groups: the requested ones, or all. The result has the form of the request's
    version."""

    __slots__ = ("_is_stable", "_offsets", "_partition", "_topic", "_topics", "_uses_ids")

    def __init__(self, offsets: Offsets, topics: TopicsImage, version: int, *, is_stable: bool) -> None:
        self._offsets = offsets
        self._topics = topics
        self._uses_ids = version >= TOPIC_ID_VERSION
        self._is_stable = is_stable
        is_old = version < BATCHED_VERSION
        self._topic: type[FetchedTopics] = OldFetchedTopic if is_old else FetchedTopics  # type: ignore[assignment]
        self._partition: type[FetchedPartition] = OldFetchedPartition if is_old else FetchedPartition  # type: ignore[assignment]

    def read(self, requested: FetchGroup) -> Steps[FetchedGroup]:
        result = FetchedGroup(group_id=requested.group_id)
        if requested.topics is None:
            yield from self._read_all(result)
            return result
        for topic in requested.topics:
            name = topic.name
            if self._uses_ids:
                found = self._topics.by_id.get(topic.topic_id)
                if found is None:
                    yield from self._unknown(result, topic)
                    continue
                name = found.name
            results = self._results_of(result, name, topic.topic_id)
            for some in portions(topic.partition_indexes):
                results += [self._read(requested.group_id, name, index) for index in some]
                yield
        return result

    def _results_of(self, result: FetchedGroup, name: str, topic_id: bytes) -> list[FetchedPartition]:
        if self._topic is FetchedTopics:
            result.topics.append(FetchedTopics(name=name, topic_id=topic_id))
        else:
            result.topics.append(self._topic(name=name))
        return result.topics[-1].partitions

    def _read_all(self, result: FetchedGroup) -> Steps[None]:
        group_id = result.group_id
        by_topic: dict[str, list[int]] = {}
        for some in portions(self._offsets.places(group_id)):
            for topic, partition in some:
                by_topic.setdefault(topic, []).append(partition)
            yield
        for name, partitions in by_topic.items():
            topic_id = NULL_UUID
            if self._uses_ids:
                found = self._topics.by_name.get(name)
                if found is None:
                    continue  # the topic was deleted: there is no id to name it by
                topic_id = found.id
            results = self._results_of(result, name, topic_id)
            for some_numbers in portions(sorted(partitions)):
                results += [self._read(group_id, name, index) for index in some_numbers]
                yield

    def _unknown(self, result: FetchedGroup, topic: FetchTopics) -> Steps[None]:
        results: list[FetchedPartition] = []
        result.topics.append(FetchedTopics(topic_id=topic.topic_id, partitions=results))
        for some in portions(topic.partition_indexes):
            results += [
                FetchedPartition(
                    partition_index=index, committed_offset=NO_OFFSET, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                for index in some
            ]
            yield

    def _read(self, group_id: str, topic: str, partition: int) -> FetchedPartition:
        offsets = self._offsets
        if self._is_stable and offsets.is_pending(group_id, topic, partition):
            return self._partition(
                partition_index=partition,
                committed_offset=NO_OFFSET,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        value = offsets.get(group_id, topic, partition)
        if value is None:
            return self._partition(partition_index=partition, committed_offset=NO_OFFSET)
        return self._partition(
            partition_index=partition,
            committed_offset=value.offset,
            committed_leader_epoch=value.leader_epoch,
            metadata=value.metadata,
        )


# Deleting


def is_long_deletion(request: OffsetDeleteRequest) -> bool:
    return sum(1 + len(topic.partitions) for topic in request.topics) > PORTION


class Deletion:
    """One OffsetDelete. Topics that members subscribe to keep their offsets."""

    __slots__ = ("_results", "accepted", "group_id", "request", "response")

    def __init__(self, request: OffsetDeleteRequest) -> None:
        self.request = request
        self.group_id = request.group_id
        self.response = OffsetDeleteResponse()
        self._results: dict[str, DeletedTopic] = {}
        self.accepted: list[tuple[str, int]] = []

    def look_up(self, topics: TopicsImage) -> Steps[None]:
        """Accept what can be deleted, and refuse the rest."""
        for topic in self.request.topics:
            for some in portions(topic.partitions):
                for partition in some:
                    index = partition.partition_index
                    if topics.partition(topic.name, index) is None:
                        self.add_result(topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    else:
                        self.accepted.append((topic.name, index))
                yield

    def add_result(self, topic: str, partition: int, error: ErrorCode) -> None:
        result = self._results.get(topic)
        if result is None:
            result = self._results[topic] = DeletedTopic(name=topic)
            self.response.topics.append(result)
        result.partitions.append(DeletedPartition(partition_index=partition, error_code=error))

    def records(self, offsets: Offsets, subscribed: set[str]) -> Steps[list[Entry]]:
        records = []
        for some in portions(self.accepted):
            for topic, partition in some:
                if topic in subscribed:
                    self.add_result(topic, partition, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                    continue
                self.add_result(topic, partition, ErrorCode.NONE)
                is_pending = offsets.is_pending(self.group_id, topic, partition)
                if is_pending or offsets.get(self.group_id, topic, partition) is not None:
                    records.append(tombstone(self.group_id, topic, partition))
            yield
        return records

"""OffsetCommit: looks up topics, makes the records and the response for every partition.

In: a request, the existing topics, the group's verdict. Out: records with their bytes, and the response. Each
step handles a portion of the partitions. From version 10 on topics are named by id.
Does not know: members and generations, authorization.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.groups.basics.kind import PartitionCheck
from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.basics.records import Entry, KeyAndValue, offset_frame
from barnabas.groups.basics.steps import PORTION
from barnabas.groups.offsets.offsets import NO_EXPIRY
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

TOPIC_ID_VERSION = 10
NO_RETENTION_TIME = -1
BYTES_PER_COMMIT = 64  # of a record, beside its texts
TOPIC_NAME_MAX = 249
INT64_MAX = 2**63 - 1

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
CommitPartition = CommitTopic.OffsetCommitRequestPartition
CommittedTopic = OffsetCommitResponse.OffsetCommitResponseTopic
CommittedPartition = CommittedTopic.OffsetCommitResponsePartition


def is_long(request: OffsetCommitRequest) -> bool:
    """Whether the request names more than a portion of partitions or topics."""
    topics = request.topics
    if len(topics) == 1:
        return len(topics[0].partitions) > PORTION
    return len(topics) > PORTION or sum(len(topic.partitions) for topic in topics) > PORTION


class Commit:
    """One OffsetCommit. As in Kafka, its response lists refused partitions first. Each method handles a
    portion of the partitions of one topic."""

    __slots__ = (
        "_expires_ms",
        "_is_separate",
        "_results",
        "_topics",
        "_uses_ids",
        "accepted",
        "encoded",
        "records",
        "request",
        "response",
    )

    def __init__(self, request: OffsetCommitRequest, version: int, topics: TopicsImage) -> None:
        self.request = request
        self.response = OffsetCommitResponse()
        self.accepted: list[tuple[CommitTopic, TopicImage, Sequence[CommitPartition]]] = []
        self.records: list[Entry] = []
        self.encoded: list[KeyAndValue] = []  # as many as records, unless some have a rare form
        self._topics = topics
        self._uses_ids = version >= TOPIC_ID_VERSION
        self._results: dict[str | bytes | int, CommittedTopic] = {}
        self._is_separate = False
        self._expires_ms = NO_EXPIRY

    def look_up(self, topic: CommitTopic, partitions: Sequence[CommitPartition]) -> None:
        """Accept what exists, and refuse the rest."""
        if self._uses_ids:
            found = self._topics.by_id.get(topic.topic_id)
        else:
            found = self._topics.by_name.get(topic.name)
        if found is None:
            unknown_id = self._uses_ids
            error = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._add_results(topic, partitions, error)
            return
        known = found.partitions
        for partition in partitions:
            if partition.partition_index not in known:
                unknown = [each for each in partitions if each.partition_index not in known]
                self._add_results(topic, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                partitions = [each for each in partitions if each.partition_index in known]
                break
        if partitions:
            self.accepted.append((topic, found, partitions))

    def end_lookup(self, now_ms: int) -> None:
        """End the lookup: later results belong to accepted partitions."""
        # As in Kafka, a topic that is named twice appears twice in the response, unless something was
        # refused.
        self._is_separate = not self.response.topics
        retention_ms = self.request.retention_time_ms
        if retention_ms != NO_RETENTION_TIME:
            self._expires_ms = min(max(now_ms + retention_ms, 0), INT64_MAX)

    def _add_results(
        self, topic: CommitTopic, partitions: Sequence[CommitPartition], error: ErrorCode
    ) -> None:
        results = self._result_of(topic).partitions
        for partition in partitions:
            results.append(CommittedPartition(partition_index=partition.partition_index, error_code=error))

    def _result_of(self, topic: CommitTopic) -> CommittedTopic:
        name: str | bytes | int
        if self._is_separate:
            name = id(topic)
        else:
            name = topic.name if topic.topic_id == NULL_UUID else topic.topic_id
        result = self._results.get(name)
        if result is None:
            result = self._results[name] = CommittedTopic(name=topic.name, topic_id=topic.topic_id)
            self.response.topics.append(result)
        return result

    def fits(self, bytes_max: int, metadata_bytes_max: int) -> bool:
        """Whether the records fit into one batch. A quick estimate decides for small commits."""
        size = BYTES_PER_COMMIT + len(self.request.group_id)
        count = 0
        for _, _, partitions in self.accepted:
            count += len(partitions)
        if count * (size + TOPIC_NAME_MAX + 3 * metadata_bytes_max) <= bytes_max:
            return True
        if count * size > bytes_max:
            return False
        needed = sum(
            size + len(found.name) + 3 * len(partition.committed_metadata or "")
            for _, found, partitions in self.accepted
            for partition in partitions
        )
        return needed <= bytes_max

    def refuse(self, position: int, error: ErrorCode) -> None:
        """Refuse what was accepted at this position; then nothing is committed."""
        topic, _, partitions = self.accepted[position]
        self._add_results(topic, partitions, error)

    def first_error(self, position: int, check: PartitionCheck) -> ErrorCode:
        """The error of the first partition that may not be committed; then none is, as in Kafka."""
        _, found, partitions = self.accepted[position]
        for partition in partitions:
            error = check(found, partition.partition_index)
            if error:
                return error
        return ErrorCode.NONE

    def write(self, position: int, metadata_bytes_max: int, now_ms: int) -> None:
        """Make the records and results of what was accepted at this position."""
        topic, found, partitions = self.accepted[position]
        expires_ms, group_id, name = self._expires_ms, self.request.group_id, found.name
        # a record holds either an expiry time or a topic id
        topic_id = found.id if expires_ms == NO_EXPIRY else NULL_UUID
        frame = offset_frame(group_id, name, topic_id, now_ms)
        results = self._result_of(topic).partitions
        for partition in partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if len(metadata) > metadata_bytes_max:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                results.append(CommittedPartition(partition_index=index, error_code=error))
                continue
            results.append(CommittedPartition(partition_index=index))
            offset, epoch = partition.committed_offset, partition.committed_leader_epoch
            value = OffsetCommitValue(
                offset=offset,
                leader_epoch=epoch,
                metadata=metadata,
                commit_timestamp=now_ms,
                expire_timestamp=expires_ms,
                topic_id=topic_id,
            )
            self.records.append(Entry(OffsetCommitKey(group=group_id, topic=name, partition=index), value))
            if frame is not None:
                written = frame.encode(index, offset, epoch, metadata)
                if written is not None:
                    self.encoded.append(written)

    def outcome(self) -> Outcome:
        records, encoded = self.records, self.encoded
        return Outcome(records, self.response, None, [], encoded if len(encoded) == len(records) else None)

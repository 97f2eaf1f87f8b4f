"""TxnOffsetCommit: offsets of a group, committed with the producer's transaction.

In: a request that the group allows, the existing topics. Out: records, which take effect when the transaction
commits, and the response. As in Kafka, it lists refused partitions first.
Does not know: members and generations, transactions.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.groups.basics.kind import PartitionCheck
from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.steps import PORTION, portions
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Partition = Topic.TxnOffsetCommitRequestPartition
TopicAnswer = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionAnswer = TopicAnswer.TxnOffsetCommitResponsePartition

# Errors of the consumer protocol, converted to those of transactions.
TRANSLATED = {ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION}


Answers = list[tuple[int, ErrorCode]]


def is_long(request: TxnOffsetCommitRequest) -> bool:
    return sum(1 + len(topic.partitions) for topic in request.topics) > PORTION


class TransactionalCommit:
    __slots__ = ("_refused", "accepted", "request")

    def __init__(self, request: TxnOffsetCommitRequest) -> None:
        self.request = request
        self._refused: list[tuple[str, Answers]] = []
        self.accepted: list[tuple[TopicImage, list[Partition]]] = []

    def look_up(self, topics: TopicsImage) -> Steps[None]:
        """Accept what can be committed, and refuse the rest."""
        for topic in self.request.topics:
            found = topics.by_name.get(topic.name)
            known = found.partitions if found is not None else {}
            accepted: list[Partition] = []
            refused: Answers = []
            for some in portions(topic.partitions):
                for partition in some:
                    if partition.partition_index in known:
                        accepted.append(partition)
                    else:
                        refused.append((partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                yield
            if refused:
                self._refused.append((topic.name, refused))
            if found is not None and accepted:
                self.accepted.append((found, accepted))

    def refuse(self, error: ErrorCode) -> TxnOffsetCommitResponse:
        """Refuse everything that was accepted, with one error; then nothing is committed."""
        code = TRANSLATED.get(error, error)
        return self._answer(
            [(found.name, [(p.partition_index, code) for p in some]) for found, some in self.accepted]
        )

    def check(self, check: PartitionCheck | None, metadata_bytes_max: int) -> Steps[None]:
        """Raise KafkaError for the first partition that may not be committed; then none is."""
        if check is None:
            return
        for found, partitions in self.accepted:
            for some in portions(partitions):
                for partition in some:
                    if len(partition.committed_metadata or "") > metadata_bytes_max:
                        continue
                    error = check(found.id, partition.partition_index)
                    if error:
                        raise KafkaError(error)
                yield

    def records(self, metadata_bytes_max: int, now_ms: int) -> Steps[Outcome]:
        """Make the records of what was accepted, and the response to everything."""
        records: list[Entry] = []
        answers: list[tuple[str, Answers]] = []
        for found, partitions in self.accepted:
            told: Answers = []
            answers.append((found.name, told))
            for some in portions(partitions):
                self._add(records, told, found.name, some, (metadata_bytes_max, now_ms))
                yield
        return Outcome(records, self._answer(answers))

    def _add(
        self,
        records: list[Entry],
        told: Answers,
        topic: str,
        partitions: Sequence[Partition],
        limits: tuple[int, int],
    ) -> None:
        metadata_bytes_max, now_ms = limits
        for partition in partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if len(metadata) > metadata_bytes_max:
                told.append((index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            told.append((index, ErrorCode.NONE))
            key = OffsetCommitKey(group=self.request.group_id, topic=topic, partition=index)
            value = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=now_ms,
            )
            records.append(Entry(key, value))

    def _answer(self, answers: list[tuple[str, Answers]]) -> TxnOffsetCommitResponse:
        """As in Kafka, a topic that is named twice appears twice in the response, unless something was
        refused."""
        response = TxnOffsetCommitResponse()
        by_name: dict[str, TopicAnswer] = {}
        for name, told in self._refused + answers:
            topic = by_name.get(name) if self._refused else None
            if topic is None:
                topic = by_name[name] = TopicAnswer(name=name)
                response.topics.append(topic)
            topic.partitions += [
                PartitionAnswer(partition_index=index, error_code=error) for index, error in told
            ]
        return response

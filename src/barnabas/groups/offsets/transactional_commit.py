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
TopicResult = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionResult = TopicResult.TxnOffsetCommitResponsePartition

# Errors of the consumer protocol, converted to those of transactions.
TRANSLATED = {ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION}


Results = list[tuple[int, ErrorCode]]


def is_long(request: TxnOffsetCommitRequest) -> bool:
    return sum(1 + len(topic.partitions) for topic in request.topics) > PORTION


class TransactionalCommit:
    __slots__ = ("_refused", "accepted", "request")

    def __init__(self, request: TxnOffsetCommitRequest) -> None:
        self.request = request
        self._refused: list[tuple[str, Results]] = []
        self.accepted: list[tuple[TopicImage, list[Partition]]] = []

    def look_up(self, topics: TopicsImage) -> Steps[None]:
        """Accept what can be committed, and refuse the rest."""
        for topic in self.request.topics:
            found = topics.by_name.get(topic.name)
            known = found.partitions if found is not None else {}
            accepted: list[Partition] = []
            refused: Results = []
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
        return self._response(
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
                    error = check(found, partition.partition_index)
                    if error:
                        raise KafkaError(error)
                yield

    def records(self, metadata_bytes_max: int, now_ms: int) -> Steps[Outcome]:
        """Make the records of what was accepted, and the response to everything."""
        records: list[Entry] = []
        results: list[tuple[str, Results]] = []
        for found, partitions in self.accepted:
            of_topic: Results = []
            results.append((found.name, of_topic))
            for some in portions(partitions):
                self._add(records, of_topic, found.name, some, (metadata_bytes_max, now_ms))
                yield
        return Outcome(records, self._response(results))

    def _add(
        self,
        records: list[Entry],
        of_topic: Results,
        topic: str,
        partitions: Sequence[Partition],
        limits: tuple[int, int],
    ) -> None:
        metadata_bytes_max, now_ms = limits
        for partition in partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if len(metadata) > metadata_bytes_max:
                of_topic.append((index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            of_topic.append((index, ErrorCode.NONE))
            key = OffsetCommitKey(group=self.request.group_id, topic=topic, partition=index)
            value = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=now_ms,
            )
            records.append(Entry(key, value))

    def _response(self, results: list[tuple[str, Results]]) -> TxnOffsetCommitResponse:
        """As in Kafka, a topic that is named twice appears twice in the response, unless something was
        refused."""
        response = TxnOffsetCommitResponse()
        by_name: dict[str, TopicResult] = {}
        for name, of_topic in self._refused + results:
            topic = by_name.get(name) if self._refused else None
            if topic is None:
                topic = by_name[name] = TopicResult(name=name)
                response.topics.append(topic)
            topic.partitions += [
                PartitionResult(partition_index=index, error_code=error) for index, error in of_topic
            ]
        return response

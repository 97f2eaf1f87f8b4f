"""A transactional producer made of raw requests; a `new` one speaks transaction version 2, others none."""

from __future__ import annotations

import time

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.records.record import Record, build_batch

from .conversation import Conversation
from .read_committed import ReadCommitted

TRANSACTION = 1  # of FindCoordinator
READ_COMMITTED = 1
TIMEOUT_MS = 60_000
FETCH_VERSION = 12


class TransactionalProducer:
    def __init__(self, talk: Conversation, transactional_id: str, *, new: bool = True) -> None:
        self.talk = talk
        self.id = transactional_id
        self.new = new
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def find(self) -> None:
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.id])
        [found] = self.talk.ask(request, 4).coordinators
        assert found.error_code == ErrorCode.NONE, found

    def init(self, timeout_ms: int = TIMEOUT_MS, *, as_known: bool = False) -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=timeout_ms)
        if as_known:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        answer: InitProducerIdResponse = self.talk.ask(request, 5)
        if not answer.error_code:
            self._become(answer.producer_id, answer.producer_epoch)
        return answer

    def begin(self, timeout_ms: int = TIMEOUT_MS) -> TransactionalProducer:
        """Found and initialized, whatever an earlier one left open."""
        self.find()
        while (code := self.init(timeout_ms).error_code) in (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ):
            pass
        assert code == ErrorCode.NONE, ErrorCode(code)
        return self

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def add(self, topic: str, *partitions: int) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
            ],
        )
        answer = self.talk.ask(request, 3)
        return [
            partition.partition_error_code
            for topic_result in answer.results_by_topic_v3_and_below
            for partition in topic_result.results_by_partition
        ]

    def add_offsets(self, group_id: str) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        code: int = self.talk.ask(request, 4).error_code
        return code

    def send(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """One batch; its error code."""
        request = self.produce_request(topic, *values, partition=partition)
        answer = self.talk.ask(request, 12 if self.new else 11)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    def produce_request(self, topic: str, *values: bytes, partition: int = 0) -> ProduceRequest:
        sequence = self.sequences.get((topic, partition), 0)
        self.sequences[topic, partition] = sequence + len(values)
        now_ms = int(time.time() * 1000)  # a marker much younger than the records would begin a new segment
        batch = build_batch(
            [Record(offset=place, timestamp=now_ms, value=value) for place, value in enumerate(values)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = ProduceRequest.TopicProduceData
        given = data.PartitionProduceData(index=partition, records=bytes(batch))
        return ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[data(name=topic, partition_data=[given])],
        )

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """One batch in the transaction, which must succeed."""
        if not self.new:
            assert self.add(topic, partition) == [ErrorCode.NONE]
        code = self.send(topic, *values, partition=partition)
        assert code == ErrorCode.NONE, ErrorCode(code)

    def end_request(self, *, commit: bool) -> tuple[EndTxnRequest, int]:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return request, 5 if self.new else 4

    def end(self, *, commit: bool = True) -> int:
        answer = self.talk.ask(*self.end_request(commit=commit))
        if self.new and not answer.error_code:
            self._become(answer.producer_id, answer.producer_epoch)
        code: int = answer.error_code
        return code

    def describe(self) -> DescribeTransactionsResponse.TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[self.id])
        [state] = self.talk.ask(request, 0).transaction_states
        assert isinstance(state, DescribeTransactionsResponse.TransactionState)
        return state


def values_of(talk: Conversation, topic: str, partition: int = 0, *, committed: bool = True) -> list[bytes]:
    """All values of a partition as a consumer sees them, in as many fetches as needed."""
    values: list[bytes] = []
    offset, end = 0, end_offset(talk, topic, partition, committed=committed)
    while offset < end:
        some, offset = values_from(talk, topic, partition, offset, committed=committed)
        values += some
    return values


def values_from(
    talk: Conversation, topic: str, partition: int, offset: int, *, committed: bool
) -> tuple[list[bytes], int]:
    """The values in one response, and the offset of the next fetch."""
    asked = FetchRequest.FetchTopic.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        isolation_level=READ_COMMITTED if committed else 0,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])],
    )
    found = talk.ask(request, FETCH_VERSION).responses[0].partitions[0]
    assert found.error_code == ErrorCode.NONE
    aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
    reader = ReadCommitted(offset)
    values = [record.value or b"" for record in reader.feed(bytes(found.records or b""), aborted)]
    return values, reader.offset


def end_offset(talk: Conversation, topic: str, partition: int = 0, *, committed: bool = False) -> int:
    """The high watermark, or the last stable offset."""
    asked = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED if committed else 0,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])],
    )
    offset: int = talk.ask(request, 5).topics[0].partitions[0].offset
    return offset

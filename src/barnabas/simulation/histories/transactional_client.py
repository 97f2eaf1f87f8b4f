"""A transactional producer of a simulated client, in the old flow or in that of KIP-890.

In: values for partitions, offsets of a group, commit or abort. Raises `Fenced` if this producer has to
initialize again. Requests without a response are repeated unchanged. Every response is reported to the
checks.
Does not know: what the values mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.records.record import Record, build_batch
from barnabas.simulation.models.transaction_checks import Epochs, Outcome, Transaction
from barnabas.simulation.world.client import SimulatedClient
from barnabas.simulation.world.history import Wrong

R = TypeVar("R", bound=Message)
TRANSACTION = 1  # key type of FindCoordinator
TIMEOUT_MS = 4_000
RETRY_S = 0.05
OLD_VERSIONS = {ProduceRequest: 11, EndTxnRequest: 4, TxnOffsetCommitRequest: 4}
NEW_VERSIONS = {ProduceRequest: 12, EndTxnRequest: 5, TxnOffsetCommitRequest: 5}
ADD_PARTITIONS_VERSION = 3
AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
NEVER = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)


class Fenced(Exception):
    """This producer was fenced and must initialize again."""


class TransactionalProducer:
    def __init__(
        self,
        client: SimulatedClient,
        transactional_id: str,
        epochs: Epochs,
        *,
        is_new: bool,
        is_trusted: Callable[[], bool],
    ) -> None:
        self._client = client
        self._id = transactional_id
        self._epochs = epochs
        self._is_new = is_new
        self._versions = NEW_VERSIONS if is_new else OLD_VERSIONS
        self._is_trusted = is_trusted
        self._producer = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[object] = set()

    async def initialize(self) -> None:
        """Find the coordinator and send InitProducerId, which fences earlier producers."""
        await self._client.ask_until_answered(
            FindCoordinatorRequest(coordinator_keys=[self._id], key_type=TRANSACTION),
            FindCoordinatorResponse,
            lambda response: response.coordinators[0].error_code == ErrorCode.NONE,
        )
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS)
        while True:
            newest = self._epochs.newest(self._id)
            response = await self._client.ask(request, InitProducerIdResponse)
            if response is not None and response.error_code == ErrorCode.NONE:
                break
            if response is not None and response.error_code not in AGAIN:
                raise Wrong(f"{self._id} cannot begin: {ErrorCode(response.error_code).name}")
            await asyncio.sleep(RETRY_S)
        self._become((response.producer_id, response.producer_epoch))
        if self._is_trusted():
            self._epochs.given(self._id, newest, self._producer)

    def _become(self, producer: tuple[int, int]) -> None:
        if producer != self._producer:
            self._sequences.clear()
        self._producer = producer
        self._added.clear()

    # -- writing -----------------------------------------------------------------------------------

    async def write(self, topic: str, partition: int, values: list[bytes]) -> None:
        """Write one batch of the transaction. It is acknowledged when this returns."""
        if not self._is_new and (topic, partition) not in self._added:
            await self._add_partition(topic, partition)
        sequence = self._sequences.get((topic, partition), 0)
        now_ms = self._client.world.clock.now_ms()
        batch = build_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = ProduceRequest.TopicProduceData
        given = data.PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=3000,
            topic_data=[data(name=topic, partition_data=[given])],
        )

        def code(response: ProduceResponse) -> int:
            found = response.responses[0].partition_responses[0].error_code
            return ErrorCode.NONE if found == ErrorCode.DUPLICATE_SEQUENCE_NUMBER else found

        await self._insist(request, ProduceResponse, code, "a batch")
        self._sequences[topic, partition] = sequence + len(values)

    async def _add_partition(self, topic: str, partition: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
            ],
        )
        await self._insist(
            request,
            AddPartitionsToTxnResponse,
            lambda response: (
                response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            "a partition",
            ADD_PARTITIONS_VERSION,
        )
        self._added.add((topic, partition))

    async def commit_offsets(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Commit offsets of a group without members, as part of the transaction."""
        pid, epoch = self._producer
        if not self._is_new and group not in self._added:
            adding = AddOffsetsToTxnRequest(
                transactional_id=self._id, producer_id=pid, producer_epoch=epoch, group_id=group
            )
            await self._insist(adding, AddOffsetsToTxnResponse, lambda found: found.error_code, "a group")
            self._added.add(group)
        part = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=pid,
            producer_epoch=epoch,
            topics=[
                part(
                    name=topic,
                    partitions=[
                        part.TxnOffsetCommitRequestPartition(partition_index=p, committed_offset=offset)
                        for p, offset in sorted(offsets.items())
                    ],
                )
            ],
        )
        await self._insist(
            request,
            TxnOffsetCommitResponse,
            lambda response: next((p.error_code for p in response.topics[0].partitions if p.error_code), 0),
            "offsets",
        )

    # -- ending ------------------------------------------------------------------------------------

    async def end(self, transaction: Transaction, *, commits: bool) -> None:
        """Commit or abort. The known outcome is stored in the transaction, even if this raises `Fenced`."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commits,
        )
        if commits:
            transaction.outcome = Outcome.COMMITTING
        doubts: list[None] = []
        try:
            response = await self._insist(
                request, EndTxnResponse, lambda found: found.error_code, "an end", on_doubt=doubts.append
            )
        except Fenced:
            if not doubts:
                transaction.outcome = Outcome.ABORTED
            raise
        transaction.outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        producer = response.producer_id, response.producer_epoch
        if self._is_new and producer[0] >= 0:
            if self._is_trusted():
                self._epochs.moved(self._id, producer)
            self._become(producer)
        else:
            self._added.clear()

    # -- asking ------------------------------------------------------------------------------------

    async def _insist(
        self,
        request: Message,
        response: type[R],
        code_of: Callable[[R], int],
        what: str,
        version_max: int | None = None,
        on_doubt: Callable[[None], None] | None = None,
    ) -> R:
        """Repeat a request until it succeeds; `Fenced` if this producer is fenced."""
        version_max = self._versions.get(type(request), version_max)
        while True:
            newest, producer = self._epochs.newest(self._id), self._producer
            found = await self._client.ask(request, response, version_max=version_max)
            if found is None:
                if on_doubt is not None:
                    on_doubt(None)
                await asyncio.sleep(RETRY_S)
                continue
            code = ErrorCode(code_of(found))
            if code is ErrorCode.NONE:
                if self._is_trusted():
                    self._epochs.accepted(self._id, newest, producer, what)
                return found
            if code in NEVER and self._is_trusted():
                raise Wrong(f"{self._id}: {what} of {producer} is refused with {code.name}")
            if code not in AGAIN:
                raise Fenced(code.name)
            if on_doubt is not None:  # a coordinator that has failed over may have written it before
                on_doubt(None)
            await asyncio.sleep(RETRY_S)

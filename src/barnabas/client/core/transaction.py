"""A producer's standing with the brokers: its id and epoch, and the transaction it is in.

In: a transactional id, or none for a producer that is only idempotent. Out: id and epoch; partitions and
offsets that belong to the transaction, and its end. Uses the flow that every broker knows: partitions are
added before they are written to. Does not know: records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.coordinators import GROUP, TRANSACTION, Coordinators
from barnabas.client.core.errors import check, error_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

R = TypeVar("R", bound=Message)

ADD_PARTITIONS_VERSION_MAX = 3  # from version 4 on it is an API between brokers
ADD_OFFSETS_VERSION_MAX = 3
END_VERSION_MAX = 4  # from version 5 on the epoch changes at each end
OFFSET_COMMIT_VERSION_MAX = 4
OFFSET_FETCH_VERSION_MAX = 7
NO_GENERATION = -1
TRANSACTION_TIMEOUT_MS = 2**31 - 1
MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})


class Fenced(Exception):
    """Another producer has taken over the transactional id."""

    def __init__(self, transactional_id: str | None) -> None:
        super().__init__(f"another attempt has taken over {transactional_id}")


class Missing(Exception):
    """A partition is not there, which is not waited for here."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(str(error))
        self.error = error


class Transaction:
    def __init__(
        self,
        cluster: ClusterCore,
        transactional_id: str | None = None,
        *,
        timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        wait_ms: float | None = None,
        waits_for_topics: bool = True,
    ) -> None:
        """The coordinator aborts after `timeout_ms`; each operation is tried again for `wait_ms`. Without
        `waits_for_topics` a partition that is not there is an error at once."""
        self._waits_for_topics = waits_for_topics
        self._cluster = cluster
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._wait_ms = wait_ms
        self.producer_id = -1
        self.producer_epoch = -1
        self._coordinators = {kind: Coordinators(cluster, kind, wait_ms) for kind in (GROUP, TRANSACTION)}
        self._added: set[TopicPartition] = set()
        self._is_open = False

    async def init(self) -> None:
        """Get an id and an epoch; a transaction that an earlier holder of the id left open is aborted."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        response = await self._ask(TRANSACTION, self.transactional_id, request, InitProducerIdResponse)
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self._added.clear()
        self._is_open = False

    async def renew(self) -> None:
        """Get the next epoch as the owner of the id (KIP-360): an open transaction is aborted, sequences
        begin anew, and Fenced is raised if another producer has taken over."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
        )
        response = await self._ask(TRANSACTION, self.transactional_id, request, InitProducerIdResponse)
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self._added.clear()
        self._is_open = False

    def join(self, producer_id: int, producer_epoch: int) -> None:
        """Write in the transaction of the producer with this id and epoch, which another process ends."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    async def add(self, topic_partition: TopicPartition) -> None:
        """The partition is about to be written to."""
        await self.add_all((topic_partition,))

    async def add_all(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Partitions are about to be written to: one request for those that the transaction has not."""
        new = set(topic_partitions) - self._added
        if self.transactional_id is None or not new:
            return
        topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        topics = [
            topic_class(name=name, partitions=[each.partition for each in some])
            for name, some in by_topic(sorted(new)).items()
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=topics,
        )
        try:
            await self._ask(
                TRANSACTION,
                self.transactional_id,
                request,
                AddPartitionsToTxnResponse,
                ADD_PARTITIONS_VERSION_MAX,
                lambda response: first_error(
                    each.partition_error_code
                    for topic in response.results_by_topic_v3_and_below
                    for each in topic.results_by_partition
                    if each.partition_error_code != ErrorCode.OPERATION_NOT_ATTEMPTED
                ),
            )
        except Missing as missing:
            raise missing.error from None
        self._added |= new
        self._is_open = True

    async def commit_offset(
        self, group: str, topic_partition: TopicPartition, offset: int, metadata: str
    ) -> None:
        """An offset that counts when the transaction is committed."""
        await self.commit_offsets(group, {topic_partition: (offset, metadata)})

    async def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Offsets with their metadata, which count when the transaction is committed."""
        assert self.transactional_id is not None
        add_group = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        me = self.transactional_id
        await self._ask(TRANSACTION, me, add_group, AddOffsetsToTxnResponse, ADD_OFFSETS_VERSION_MAX)
        self._is_open = True
        topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        topics: dict[str, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
        for place, (offset, metadata) in offsets.items():
            topic = topics.setdefault(place.topic, topic_class(name=place.topic, partitions=[]))
            topic.partitions.append(
                topic_class.TxnOffsetCommitRequestPartition(
                    partition_index=place.partition, committed_offset=offset, committed_metadata=metadata
                )
            )
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id=NO_GENERATION,
            topics=list(topics.values()),
        )
        await self._ask(
            GROUP,
            group,
            commit,
            TxnOffsetCommitResponse,
            OFFSET_COMMIT_VERSION_MAX,
            lambda response: first_error(
                each.error_code for topic in response.topics for each in topic.partitions
            ),
        )

    async def highest_committed(self, group: str) -> int:
        """The highest offset that the group committed, whatever the partition, or -1; open transactions are
        waited for."""
        found = await self.committed(group)
        return max((offset for offset, _ in found.values()), default=-1)

    async def committed(
        self, group: str, places: Iterable[TopicPartition] | None = None, *, is_stable: bool = True
    ) -> dict[TopicPartition, tuple[int, str]]:
        """Offsets that the group committed, with their metadata, of these partitions or of all. Open
        transactions are waited for, unless `is_stable` is False: then offsets are those before them."""
        topics = None
        if places is not None:
            by_topic: dict[str, list[int]] = {}
            for place in places:
                by_topic.setdefault(place.topic, []).append(place.partition)
            topic_class = OffsetFetchRequest.OffsetFetchRequestTopic
            topics = [topic_class(name=name, partition_indexes=each) for name, each in by_topic.items()]
        response = await self._ask(
            GROUP,
            group,
            OffsetFetchRequest(group_id=group, topics=topics, require_stable=is_stable),
            OffsetFetchResponse,
            OFFSET_FETCH_VERSION_MAX,
            lambda found: found.error_code or first_error(each.error_code for each in partitions_of(found)),
        )
        return {
            TopicPartition(topic.name, each.partition_index): (each.committed_offset, each.metadata or "")
            for topic in response.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def end(self, *, commit: bool) -> None:
        if self.transactional_id is None or not self._is_open:
            return
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=commit,
        )
        await self._ask(TRANSACTION, self.transactional_id, request, EndTxnResponse, END_VERSION_MAX)
        self._added.clear()
        self._is_open = False

    # -- coordinators ----------------------------------------------------------------------------

    async def _ask(
        self,
        kind: int,
        key: str | None,
        request: Message,
        response_type: type[R],
        version_max: int | None = None,
        error_in: Callable[[R], int] = lambda response: response.error_code,  # type: ignore[attr-defined]
    ) -> R:
        """The response of a coordinator; of any broker where there is no key."""

        async def question(node: Node | None) -> R:
            address = None if node is None else node.address
            connection = await (
                self._cluster.connection_to(address) if address else self._cluster.any_connection()
            )
            response = await connection.send(request, response_type, version_max=version_max)
            code = error_in(response)
            if code in FENCED:
                raise Fenced(self.transactional_id)
            if code in MISSING and not self._waits_for_topics:
                raise Missing(KafkaError(ErrorCode(code), refusal_text(request, key, code)))
            check(code, refusal_text(request, key, code))
            return response

        if key is not None:
            return await self._coordinators[kind].ask_one(key, question)
        patience = self._cluster.patience(self._wait_ms)
        return await self._cluster.retrying(lambda: question(None), patience=patience)


def refusal_text(request: Message, key: str | None, code: int) -> str:
    name = type(request).__name__.removesuffix("Request")
    owner = f" for {key}" if key else ""
    return f"the broker refused {name}{owner}: {error_of(code).code.message}"


Committed = OffsetFetchResponse.OffsetFetchResponseTopic.OffsetFetchResponsePartition


def partitions_of(response: OffsetFetchResponse) -> list[Committed]:
    return [partition for topic in response.topics for partition in topic.partitions]


def first_error(codes: Iterable[int]) -> int:
    """The first code that is an error, or 0."""
    return next((code for code in codes if code), int(ErrorCode.NONE))

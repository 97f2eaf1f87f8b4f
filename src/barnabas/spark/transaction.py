"""A producer's standing with the brokers: its id and epoch, and the transaction it is in.

In: a transactional id, or none for a producer that is only idempotent. Out: id and epoch; partitions and
offsets that belong to the transaction, and its end. Uses the flow that every broker knows: partitions are
added before they are written to. Does not know: records, Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.client.address import Address
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.spark.cluster import RETRIABLE, BlockingCluster, Place

R = TypeVar("R", bound=Message)
Result = TypeVar("Result")

GROUP, TRANSACTION = 0, 1
FIND_COORDINATOR_VERSION_MAX = 3  # one key a request
ADD_PARTITIONS_VERSION_MAX = 3  # from version 4 on it is an API between brokers
ADD_OFFSETS_VERSION_MAX = 3
END_VERSION_MAX = 4  # from version 5 on the epoch changes at each end
OFFSET_COMMIT_VERSION_MAX = 4
OFFSET_FETCH_VERSION_MAX = 7
NO_GENERATION = -1
PASSING = RETRIABLE | {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT}


class Fenced(Exception):
    """Somebody else has taken over the transactional id: another attempt of the same task."""


class Transaction:
    def __init__(
        self, cluster: BlockingCluster, transactional_id: str | None, *, timeout_ms: int, wait_ms: int
    ) -> None:
        self._cluster = cluster
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms  # after which the coordinator aborts
        self._wait_ms = wait_ms  # how long we go on trying
        self.producer_id = -1
        self.producer_epoch = -1
        self._coordinators: dict[tuple[int, str], Address] = {}
        self._added: set[Place] = set()
        self._is_open = False

    def init(self) -> None:
        """Get an id and an epoch; a transaction that an earlier holder of the id left open is aborted."""
        response = self._ask_coordinator(
            TRANSACTION,
            self.transactional_id,
            InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
            ),
            InitProducerIdResponse,
            None,
            lambda answer: answer.error_code,
        )
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self._added.clear()
        self._is_open = False

    def add(self, place: Place) -> None:
        """The partition is about to be written to."""
        if self.transactional_id is None or place in self._added:
            return
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=place.topic, partitions=[place.partition]
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[topic],
        )

        def error_of(answer: Any) -> int:
            results = answer.results_by_topic_v3_and_below
            return int(results[0].results_by_partition[0].partition_error_code)

        self._ask_coordinator(
            TRANSACTION,
            self.transactional_id,
            request,
            AddPartitionsToTxnResponse,
            ADD_PARTITIONS_VERSION_MAX,
            error_of,
        )
        self._added.add(place)
        self._is_open = True

    def commit_offset(self, group: str, place: Place, offset: int, metadata: str) -> None:
        """An offset that counts when the transaction is committed."""
        assert self.transactional_id is not None
        self._ask_coordinator(
            TRANSACTION,
            self.transactional_id,
            AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                group_id=group,
            ),
            AddOffsetsToTxnResponse,
            ADD_OFFSETS_VERSION_MAX,
            lambda answer: answer.error_code,
        )
        self._is_open = True
        topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        partition = topic_class.TxnOffsetCommitRequestPartition(
            partition_index=place.partition, committed_offset=offset, committed_metadata=metadata
        )
        self._ask_coordinator(
            GROUP,
            group,
            TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                generation_id=NO_GENERATION,
                topics=[topic_class(name=place.topic, partitions=[partition])],
            ),
            TxnOffsetCommitResponse,
            OFFSET_COMMIT_VERSION_MAX,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )

    def committed(self, group: str, place: Place) -> tuple[int, str]:
        """The offset that was last committed, or -1, with its metadata; open transactions are waited for."""
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(
            name=place.topic, partition_indexes=[place.partition]
        )
        response = self._ask_coordinator(
            GROUP,
            group,
            OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True),
            OffsetFetchResponse,
            OFFSET_FETCH_VERSION_MAX,
            lambda answer: answer.error_code or answer.topics[0].partitions[0].error_code,
        )
        found = response.topics[0].partitions[0]
        return found.committed_offset, found.metadata or ""

    def end(self, *, commit: bool) -> None:
        if self.transactional_id is None or not self._is_open:
            return
        self._ask_coordinator(
            TRANSACTION,
            self.transactional_id,
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=commit,
            ),
            EndTxnResponse,
            END_VERSION_MAX,
            lambda answer: answer.error_code,
        )
        self._added.clear()
        self._is_open = False

    # -- coordinators ----------------------------------------------------------------------------

    def _ask_coordinator(
        self,
        kind: int,
        key: str | None,
        request: Message,
        response: type[R],
        version_max: int | None,
        error_of: Callable[[Any], int],
    ) -> R:
        def attempt() -> R:
            connection = self._cluster.to_any() if key is None else self._coordinator(kind, key)
            try:
                version = connection.version_for(type(request), version_max)
                connection.send(request, version)
                answer = connection.receive(response)
            except BaseException:
                self._cluster.drop(connection)
                self._coordinators.pop((kind, key or ""), None)
                raise
            code = ErrorCode(error_of(answer))
            if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED):
                raise Fenced(f"another attempt has taken over {self.transactional_id}")
            if code:
                self._coordinators.pop((kind, key or ""), None)
                raise KafkaError(code, f"{type(request).__name__} for {key}: {code.name}")
            return answer

        return self._cluster.keep_trying(attempt, (), self._wait_ms, passing=PASSING)

    def _coordinator(self, kind: int, key: str) -> Any:
        address = self._coordinators.get((kind, key))
        if address is None:
            connection = self._cluster.to_any()
            try:
                version = connection.version_for(FindCoordinatorRequest, FIND_COORDINATOR_VERSION_MAX)
                connection.send(FindCoordinatorRequest(key=key, key_type=kind), version)
                found = connection.receive(FindCoordinatorResponse)
            except BaseException:
                self._cluster.drop(connection)
                raise
            if found.error_code:
                code = ErrorCode(found.error_code)
                raise KafkaError(code, f"the coordinator of {key}: {code.name}")
            address = self._coordinators[kind, key] = Address(found.host, found.port)
        return self._cluster.to(address)

"""Transactions as an administrator sees them: list, describe, producers of a partition, abort, terminate.

In: a Cluster and the coordinators of transactional ids. Out: frozen values, errors for each id or partition.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.asking import ask_leaders
from barnabas.client.core.errors import check, error_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

NO_DURATION = -1
FENCE_TIMEOUT_MS = 1  # the id is not going to be used: its transaction may end at once


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start: int | None


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """Identification of a partition's transaction that is to be aborted."""

    where: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class TransactionAdmin(AdminPart):
    async def list_transactions(
        self,
        *,
        producer_ids: Collection[int] = (),
        duration_ms: int = NO_DURATION,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Transactions of all coordinators, in the order of the brokers' ids."""
        request = ListTransactionsRequest(
            producer_id_filters=list(producer_ids),
            duration_filter=duration_ms,
            transactional_id_pattern=pattern,
        )
        topology = await self.cluster.retrying(self.cluster.refresh)
        found = []
        for _, node in sorted(topology.nodes.items()):
            response = await self.ask(request, ListTransactionsResponse, node=node)
            found += [
                TransactionListing(each.transactional_id, node.id, each.producer_id, each.transaction_state)
                for each in response.transaction_states
            ]
        return found

    async def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription | KafkaError]:
        async def question(node: Node, ids: list[str]) -> Mapping[str, TransactionDescription | KafkaError]:
            request = DescribeTransactionsRequest(transactional_ids=ids)
            response = await self.cluster.ask_node(node, request, DescribeTransactionsResponse)
            return {
                each.transactional_id: error_of(each.error_code)
                if each.error_code
                else description_of(each, node.id)
                for each in response.transaction_states
            }

        return await self.transaction_coordinators.ask(transactional_ids, question)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> dict[TopicPartition, list[ActiveProducer] | KafkaError]:
        """Producers that the leader of each partition knows, or a given broker."""
        wanted = dict.fromkeys(partitions)
        if broker_id is None:
            return await ask_leaders(self.cluster, wanted, self._ask_producers)
        return dict(await self._ask_producers(await self.node(broker_id), wanted))

    async def _ask_producers(
        self, node: Node, wanted: Mapping[TopicPartition, None]
    ) -> Mapping[TopicPartition, list[ActiveProducer] | KafkaError]:
        nested = DescribeProducersRequest.TopicRequest
        request = DescribeProducersRequest(
            topics=[
                nested(name=name, partition_indexes=[topic_partition.partition for topic_partition in some])
                for name, some in by_topic(wanted).items()
            ]
        )
        response = await self.cluster.ask_node(node, request, DescribeProducersResponse)
        return {
            TopicPartition(topic.name, each.partition_index): error_of(each.error_code, each.error_message)
            if each.error_code
            else [producer_of(state) for state in each.active_producers]
            for topic in response.topics
            for each in topic.partitions
        }

    async def abort_transaction(self, aborted: AbortedTransaction) -> None:
        """Write an abort marker into one partition, whatever the coordinator thinks."""
        nested = WriteTxnMarkersRequest.WritableTxnMarker
        marker = nested(
            producer_id=aborted.producer_id,
            producer_epoch=aborted.producer_epoch,
            transaction_result=False,
            coordinator_epoch=aborted.coordinator_epoch,
            topics=[
                nested.WritableTxnMarkerTopic(
                    name=aborted.where.topic, partition_indexes=[aborted.where.partition]
                )
            ],
        )

        async def question(
            node: Node, wanted: Mapping[TopicPartition, None]
        ) -> Mapping[TopicPartition, bool | KafkaError]:
            request = WriteTxnMarkersRequest(markers=[marker])
            response = await self.cluster.ask_node(node, request, WriteTxnMarkersResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    error_of(each.error_code) if each.error_code else True
                )
                for result in response.markers
                for topic in result.topics
                for each in topic.partitions
            }

        results = await ask_leaders(self.cluster, {aborted.where: None}, question)
        result = results[aborted.where]
        if isinstance(result, KafkaError):
            raise result

    async def fence_producer(self, transactional_id: str) -> None:
        """Raise the epoch of an id: its producer is fenced and its transaction is aborted."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=FENCE_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )

        async def question(node: Node) -> None:
            response = await self.cluster.ask_node(node, request, InitProducerIdResponse)
            check(response.error_code)

        await self.transaction_coordinators.ask_one(transactional_id, question)


def description_of(
    state: DescribeTransactionsResponse.TransactionState, coordinator: int
) -> TransactionDescription:
    return TransactionDescription(
        coordinator,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        tuple(TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions),
    )


def producer_of(
    state: DescribeProducersResponse.TopicResponse.PartitionResponse.ProducerState,
) -> ActiveProducer:
    return ActiveProducer(
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
    )

"""The transaction coordinator of this broker: a shard for every partition of `__transaction_state` it leads.

In: settings, requests of clients, and verifications by partitions of this broker. Out: shards and their
hosts; responses, at once or when they are committed.
Does not know: leadership (see `coordinator`), the state of transactions, how markers are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.coordinators.coordinator import Coordinator
from barnabas.broker.coordinators.remote_verification import verify_remotely
from barnabas.broker.coordinators.topic import partition_for
from barnabas.broker.coordinators.transaction_topic import LAYOUT
from barnabas.metadata.partitions import NO_LEADER
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.transaction_host import TransactionHost
    from barnabas.broker.partitions.partition import Partition
    from barnabas.transactions.outcome import TopicPartition
    from barnabas.transactions.settings import TransactionSettings
    from barnabas.transactions.shard import TransactionShard

Errors = dict["TopicPartition", int]
TransactionResponse = Message | Deferred | Awaitable[Message] | None


class TransactionCoordinator(Coordinator["TransactionHost"]):
    modules = "barnabas.broker.coordinators.transaction_host", "barnabas.transactions.shard"
    needs_leader_changes = True  # markers that could not be written go to the new leader

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, LAYOUT)
        self.verifications_failed = 0

    def new_host(self, partition: Partition) -> TransactionHost:
        from barnabas.broker.coordinators.transaction_host import TransactionHost

        return TransactionHost(self, partition)

    def new_shard(self, partition: Partition) -> TransactionShard:
        from barnabas.transactions.shard import TransactionShard

        now_ms = self.broker.clock.now_ms()
        return TransactionShard(self.settings(), partition.leader_epoch, now_ms, self._partition_of_group)

    def _partition_of_group(self, group_id: str) -> int:
        return partition_for(group_id, self.broker.groups.topic.partition_count)

    def settings(self) -> TransactionSettings:
        from barnabas.transactions.settings import TransactionSettings

        return TransactionSettings.of(self.broker.settings)

    def configure(self, host: TransactionHost) -> None:
        host.shard.configure(self.settings())

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        """Errors of the request itself come before errors of the coordinator."""
        from barnabas.transactions.responses import early, refusal

        response = early(request, version, self.settings(), self.broker.image)
        return response if response is not None else refusal(request, error.code, version)

    def leadership_changed(self, partition: Partition) -> None:
        super().leadership_changed(partition)
        if partition.topic == self.topic.name:
            host = self.hosts.get(partition.index)
            if host is not None:
                host.set_leader_epoch(partition.leader_epoch)

    # -- requests --------------------------------------------------------------------------------

    def handle_with_ids(
        self, key: str, request: InitProducerIdRequest | EndTxnRequest, context: RequestContext
    ) -> TransactionResponse:
        """Do the same as `handle` for requests that may need a new producer id."""
        if self.broker.producer_ids.is_ready:
            return self.handle(key, request, context)
        host = self.host_of(key)
        if host is None or host.error is not None or not host.shard.needs_producer_id(request):
            return self.handle(key, request, context)
        return self._when_there_are_ids(key, request, context, context.version)

    async def _when_there_are_ids(
        self, key: str, request: Message, context: RequestContext, version: int
    ) -> Message:
        try:
            await self.broker.producer_ids.wait_until_ready()
        except KafkaError as error:
            return self.refusal(request, error, version)
        host = self.host_of(key)
        if host is None:
            return self.refusal(request, self.error_without_host(key), version)
        response = host.handle_part(request, context)
        return response if isinstance(response, Message) else await resolved(response)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
        counted: bool = True,
    ) -> Errors | asyncio.Future[Errors]:
        """Check that these partitions are in the producer's ongoing transaction, or add them to it (`add`,
        KIP-890). Out: an error code for each, at once where that is possible. A coordinator on another broker
        is asked over the network. `counted=False` keeps failures out of the metrics, for callers that
        retry."""
        if not transactional_id:
            return dict.fromkeys(partitions, int(ErrorCode.INVALID_REQUEST))
        host = self.host_of(transactional_id)
        if host is None:
            leader = self._leader_elsewhere(transactional_id)
            if leader is None:
                error = self.error_without_host(transactional_id)
                return dict.fromkeys(partitions, int(error.code))
            owner = transactional_id, producer_id, producer_epoch
            asking = self.broker.loop.create_task(
                verify_remotely(self.broker, leader, owner, partitions, add)
            )
            asking.add_done_callback(self._verified_since(perf_counter_ns()))
            return asking
        found = host.verify(transactional_id, producer_id, producer_epoch, partitions, add=add)
        if isinstance(found, dict):
            if counted:
                self._count_failures(found)
        else:
            found.add_done_callback(self._verified_since(perf_counter_ns()))
        return found

    def verifies_at_once(self, transactional_id: str) -> bool:
        """Whether `verify` returns without waiting: the coordinator is here and has no followers."""
        host = self.host_of(transactional_id)
        return host is not None and host.partition.is_committed_by_writing

    def _leader_elsewhere(self, transactional_id: str) -> int | None:
        """The other broker that coordinates a transactional id, if one does."""
        try:
            leader = self.topic.leader_of(transactional_id)
        except KafkaError:
            return None
        return leader if leader not in (NO_LEADER, self.broker.node_id) else None

    def _verified_since(self, began_ns: int) -> Callable[[asyncio.Future[Errors]], None]:
        def verified(found: asyncio.Future[Errors]) -> None:
            if not found.cancelled():  # as it is when the producer's connection was lost
                self.stats.verifications.observe(perf_counter_ns() - began_ns)
                self._count_failures(found.result())

        return verified

    def _count_failures(self, errors: Errors) -> None:
        for code in errors.values():
            if code:
                self.verifications_failed += 1


async def resolved(deferred: Deferred) -> Message:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    deferred.then(lambda message: None if future.done() else future.set_result(message))
    try:
        message = await future
    except asyncio.CancelledError:
        deferred.cancel()
        raise
    if message is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a request got no response")
    assert isinstance(message, Message)
    return message

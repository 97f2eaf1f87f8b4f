"""Changes of the ISR of partitions that this broker leads: followers that catch up join, laggards leave.

In: followers' fetches (`joining`), time. Out: AlterPartition requests to the controller, one in flight at a
time, the next with everything that came meanwhile; the partitions apply the responses. A request that fails
is sent again. A proposal that the controller refuses is dropped: the next metadata record corrects the ISR.
Does not know: the progress of followers (see `replication.partition_state`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.runtime.pieces import Steps, at_once

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition

log = logging.getLogger("barnabas.isr")
Topic = AlterPartitionRequest.TopicData
Asked = Topic.PartitionData
RETRY_MS = 50
PARTITIONS_MAX = 500  # in one request: it is made, and its response applied, without a pause
LAG = "replica.lag.time.max.ms"
# Sent again: the controller changes, or is behind this broker.
TRANSIENT = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR)


class InSyncReplicas:
    def __init__(self, broker: Broker, send: Callable[[Message], Awaitable[Any]]) -> None:
        self._broker = broker
        self._send = send
        self._proposals: dict[Partition, tuple[int, ...]] = {}  # to be sent, with the ISR before
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._is_expanding = self._expands_again = False
        self.expands = self.shrinks = self.failures = 0

    def start(self) -> None:
        half_lag = self._broker.settings[LAG] / 2000
        self._timer = self._broker.loop.call_later(half_lag, self._on_time)

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    def _on_time(self) -> None:
        self._broker.pieces.begin(self._look())

    def _look(self) -> Steps[None]:
        yield from self._shrinking()
        yield from self._expanding()
        if not self._is_closed:
            self.start()

    # -- proposing -------------------------------------------------------------------------------

    def joining(self, partition: Partition, replica_id: int) -> None:
        """Propose a follower that has fetched and caught up."""
        isr = partition.state.isr_with(replica_id)
        if isr is not None:
            self.expands += 1
            self._propose(partition, isr)

    def expand(self) -> None:
        """Propose followers that had caught up before they were eligible: a broker that was just unfenced or
        restarted may send no further fetch that would show its progress."""
        if self._is_expanding:
            self._expands_again = True
        else:
            self._is_expanding = True
            self._broker.pieces.begin(self._until_expanded())

    def _until_expanded(self) -> Steps[None]:
        self._expands_again = True
        while self._expands_again:
            self._expands_again = False
            yield from self._expanding()
        self._is_expanding = False

    def _expanding(self) -> Steps[None]:
        yield from self._broker.partitions.in_steps(self._expand)

    def _expand(self, partition: Partition) -> None:
        state = partition.state
        if partition.is_leader and len(state.isr) <= len(state.followers):
            for replica_id in state.followers:
                if replica_id not in state.isr:
                    self.joining(partition, replica_id)

    def shrink(self) -> None:
        """Propose ISRs without followers that fell behind."""
        at_once(self._shrinking())

    def _shrinking(self) -> Steps[None]:
        yield from self._broker.partitions.in_steps(self._shrink)

    def _shrink(self, partition: Partition) -> None:
        if partition.is_leader and not partition.state.has_no_followers:
            lagging = partition.state.lagging_followers(int(self._broker.loop.time() * 1000))
            if lagging:
                isr = tuple(each for each in partition.state.isr if each not in lagging)
                log.info("%s: replicas %s fell behind and leave the ISR", partition, lagging)
                self.shrinks += 1
                self._propose(partition, isr)

    def _propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self._proposals[partition] = partition.state.isr
        partition.state.propose_isr(isr)
        if self._sending is None and not self._is_closed:
            self._sending = self._broker.loop.create_task(self._send_all())

    # -- requests --------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        try:
            await asyncio.sleep(0)  # more may come up in this turn of the loop
            while self._proposals:
                some = dict(islice(self._proposals.items(), PARTITIONS_MAX))
                asked = self._request(some)
                for partition in some:
                    del self._proposals[partition]
                if not asked.topics:
                    continue
                try:
                    response = await self._send(asked)
                    if response.error_code:
                        raise KafkaError(ErrorCode(response.error_code), "the ISR was not changed")
                except KafkaError as error:
                    self.failures += 1
                    log.info("AlterPartition failed, retrying: %s", error)
                    self._proposals = some | self._proposals
                    await asyncio.sleep(RETRY_MS / 1000)
                    continue
                self._apply_response(some, response)
        finally:
            self._sending = None

    def _request(self, some: dict[Partition, tuple[int, ...]]) -> AlterPartitionRequest:
        broker = self._broker
        topics: dict[bytes, Topic] = {}
        for partition in some:
            state = partition.state
            if not partition.is_leader or state.proposed_isr is None:
                continue  # a metadata record has changed it already
            topic = topics.setdefault(partition.topic_id, Topic(topic_id=partition.topic_id, partitions=[]))
            topic.partitions.append(
                Asked(
                    partition_index=partition.index,
                    leader_epoch=state.leader_epoch,
                    partition_epoch=state.partition_epoch,
                    new_isr_with_epochs=[
                        Asked.BrokerState(
                            broker_id=replica, broker_epoch=self._broker_epoch_of(partition, replica)
                        )
                        for replica in state.proposed_isr
                    ],
                )
            )
        return AlterPartitionRequest(
            broker_id=broker.node_id, broker_epoch=broker.epoch, topics=list(topics.values())
        )

    def _broker_epoch_of(self, partition: Partition, replica: int) -> int:
        """The broker epoch of the replica's last fetch: after a restart it may have lost records."""
        if replica == self._broker.node_id:
            return self._broker.epoch
        follower = partition.state.followers.get(replica)
        return follower.broker_epoch if follower is not None else -1

    def _apply_response(self, some: dict[Partition, tuple[int, ...]], response: Any) -> None:
        by_place = {(partition.topic_id, partition.index): partition for partition in some}
        for topic in response.topics:
            for found in topic.partitions:
                partition = by_place.get((topic.topic_id, found.partition_index))
                if partition is None or partition.state.proposed_isr is None:
                    continue
                code = ErrorCode(found.error_code)
                if code == ErrorCode.NONE:
                    partition.settle_isr(tuple(found.isr), found.leader_epoch, found.partition_epoch)
                    self._expand(partition)  # followers that had to wait for this response
                elif partition in self._proposals:
                    continue  # the refused proposal is older than the last change of the ISR
                elif code in TRANSIENT:
                    self._proposals.setdefault(partition, some[partition])
                else:
                    self.failures += 1
                    log.info("the controller refused an ISR of %s: %s", partition, code.name)
                    partition.state.withdraw_proposal(some[partition])

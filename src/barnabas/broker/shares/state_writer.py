"""The state writer: stores the states of share partitions, those of one group together.

In: share partitions with states to store. Out: one request to the persister for all partitions of a group
that changed in a turn of the loop. A share partition has one write under way; what changes meanwhile is in
its next one, so that states are stored in order.
Does not know: what the states mean, where coordinators are.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.shares.led_share_partition import LedSharePartition, Unstored

Topic = WriteShareGroupStateRequest.WriteStateData
PartitionData = Topic.PartitionData
StateBatch = PartitionData.StateBatch


class StateWriter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._due: dict[str, dict[LedSharePartition, None]] = {}  # by group
        self._is_scheduled = False
        self._writes: set[asyncio.Task[None]] = set()

    def add(self, share: LedSharePartition) -> None:
        """Write what the share partition has not stored, unless a write is under way."""
        if share.is_writing:
            return
        self._due.setdefault(share.group, {})[share] = None
        if not self._is_scheduled:
            self._is_scheduled = True
            self._broker.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        due, self._due = self._due, {}
        for group, shares in due.items():
            taken = [(share, share.take_unstored()) for share in shares]
            task = self._broker.loop.create_task(self._write(group, taken))
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)

    async def _write(self, group: str, taken: list[tuple[LedSharePartition, Unstored]]) -> None:
        failure: KafkaError | None = None
        errors: dict[tuple[bytes, int], KafkaError] = {}
        try:
            response = await self._broker.share_persister.write(request_of(group, taken))
            for topic in response.results:
                for result in topic.partitions:
                    if result.error_code:
                        code = ErrorCode(result.error_code)
                        error = KafkaError(code, result.error_message or "")
                        errors[topic.topic_id, result.partition] = error
        except asyncio.CancelledError:
            raise
        except Exception:
            self._broker.unexpected.note("storing the state of share group", group)
            failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        for share, unstored in taken:
            try:
                where = share.partition.topic_id, share.partition.index
                share.stored(unstored, failure or errors.get(where))
            except Exception:
                self._broker.unexpected.note("going on after a write of", share)
            if share.has_unstored:
                self.add(share)

    async def close(self) -> None:
        for task in list(self._writes):
            task.cancel()
        await asyncio.gather(*self._writes, return_exceptions=True)


def request_of(group: str, taken: list[tuple[LedSharePartition, Unstored]]) -> WriteShareGroupStateRequest:
    topics: dict[bytes, Topic] = {}
    for share, unstored in taken:
        partition, state = share.partition, share.state
        assert state is not None
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = Topic(topic_id=partition.topic_id, partitions=[])
        topic.partitions.append(
            PartitionData(
                partition=partition.index,
                state_epoch=state.state_epoch,
                leader_epoch=share.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.complete_count,
                state_batches=[
                    StateBatch(
                        first_offset=each.first,
                        last_offset=each.last,
                        delivery_state=each.state,
                        delivery_count=each.deliveries,
                    )
                    for each in unstored.ranges
                ],
            )
        )
    return WriteShareGroupStateRequest(group_id=group, topics=list(topics.values()))

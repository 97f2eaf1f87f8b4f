"""Reads the audit topic: all of its count messages, then those that came since the last look.

In: a client of the brokers. Out: count messages, with the time at which the broker stored them. Records that
are no count messages are passed over and counted. Does not know: what becomes of messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from barnabas.audit.core.messages import CountMessage, MessageError, decode
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

log = logging.getLogger("barnabas.audit")
POLL_MS = 1_000.0
CONSUMING = ConsumerSettings(
    read_committed=True,
    on_out_of_range=OnOutOfRange.EARLIEST,
    partition_fetch_bytes_max=64 * 1024,  # count messages shrink to a tenth: these are decoded in one piece
)

Apply = Callable[[CountMessage, int], object]
See = Callable[[bytes | None, int], object]
TURN_S = 0.002  # then others on the loop have theirs


def place_of(record: ConsumerRecord) -> tuple[str, int, int]:
    return record.topic, record.partition, record.offset


class AuditTopicReader:
    def __init__(
        self, cluster: ClusterCore, topic: str = AUDIT_TOPIC, *, from_ms: int = OffsetSpec.EARLIEST
    ) -> None:
        """`from_ms`: older messages are passed over, as if they were deleted."""
        self._cluster = cluster
        self._topic = topic
        self._from_ms = from_ms
        self._consumer: Consumer | None = None
        self.unreadable = 0
        self.since_ms = 0  # older messages are deleted
        self._cut_off: set[int] = set()  # partitions whose first messages are deleted

    async def catch_up(self, apply: Apply) -> None:
        """Read everything that the audit topic has now."""
        await self.catch_up_with(lambda value, arrived_ms: apply(decode(value), arrived_ms))

    async def catch_up_with(self, see: See) -> None:
        """Read it as bytes. MessageError of `see`: the record is no count message."""
        count = await self._cluster.partitions_of(self._topic)
        partitions = [TopicPartition(self._topic, index) for index in range(count)]
        if self._consumer is None:
            self._consumer = Consumer(self._cluster, CONSUMING)
        consumer = self._consumer
        new = [each for each in partitions if each not in consumer.positions]
        if new:
            await consumer.assign_at(new, self._from_ms)
            self._cut_off |= {each.partition for each in new if consumer.positions[each]}
        goal: dict[TopicPartition, int] = {}
        wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
        for place, found in (await Admin(self._cluster).list_offsets(wanted, read_committed=True)).items():
            if isinstance(found, KafkaError):
                raise found
            goal[place] = found.offset
        while any(consumer.positions[place] < end for place, end in goal.items()):
            try:
                records = await consumer.poll(POLL_MS)
            except DamagedBatch as damaged:
                consumer.assign({damaged.where: damaged.next_offset})
                continue
            loop = asyncio.get_running_loop()
            until = loop.time() + TURN_S
            for record in records:
                if loop.time() > until:
                    await asyncio.sleep(0)
                    until = loop.time() + TURN_S
                if record.partition in self._cut_off:
                    self._cut_off.discard(record.partition)
                    self.since_ms = max(self.since_ms, record.timestamp)
                try:
                    see(record.value, record.timestamp)
                except MessageError:
                    self.unreadable += 1
                except Exception:  # the others still count: a second reading would stop at the same message
                    self.unreadable += 1
                    log.exception("the message at %s-%d:%d is left out", *place_of(record))

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.close()

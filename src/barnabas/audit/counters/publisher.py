"""Sends count messages: a producer of the audit topic, on the event loop of its caller.

In: count messages. Out: their records, acknowledged by all in-sync replicas. The producer is idempotent, and
a message that must be sent again is the same one: its range tells readers. Does not know: what is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.audit.core.messages import CountMessage, encode
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, ensure_topic
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.records.compression import Compression

PRODUCING = ProducerSettings(
    acks=-1,
    linger_ms=5,
    idempotence=True,
    compression=Compression.GZIP,
    delivery_timeout_ms=30_000,
    block_ms_max=10_000,
)


class Publisher:
    def __init__(self, cluster: ClusterCore, topic: str = AUDIT_TOPIC) -> None:
        self._cluster = cluster
        self._topic = topic
        self._producer: Producer | None = None

    async def send(self, messages: Sequence[CountMessage]) -> None:
        """Returns when all are stored. KafkaError or ClientError: some may be; send all of them again."""
        if self._producer is None:
            await ensure_topic(self._cluster, self._topic)
            self._producer = Producer(self._cluster, PRODUCING)
        producer = self._producer
        try:
            sent = [await producer.send(self._topic, encode(each), each.stream.encode()) for each in messages]
            await producer.flush()
            for each in sent:
                each.result()
        except BaseException:
            self._producer = None  # a new producer id: what failed may have left a gap in the sequence
            await asyncio.shield(producer.close())
            raise

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.close()
            self._producer = None

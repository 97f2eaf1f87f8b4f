"""Records on their way to one topic.

In: records with bytes. Out: a `SentRecord` for each, or the error that keeps it from being sent. A topic that
cannot be found is looked for once; for a moment, other records of the same sender fail at once.
Does not know: JSON, streams.
"""

from __future__ import annotations

import asyncio

from barnabas.client.accumulator import SentRecord
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import NOT_FOUND, refusal
from barnabas.rest.produce_rates import ProduceRates
from barnabas.rest.v3.records import NewRecord

FAILURE_KEPT_S = 1.0
PARTITIONS_ASKED_AFTER_S = 1.0  # partitions may be added; a stream asks at most so often


class Sender:
    def __init__(self, kafka: Kafka, topic: str, rates: ProduceRates) -> None:
        self._kafka = kafka
        self._rates = rates
        self._topic = topic
        self._failure: KafkaError | ClientError | None = None
        self._failed_at = 0.0
        self._partitions_asked_at = float("-inf")

    async def send(self, record: NewRecord) -> SentRecord:
        """Hand a record to the producer. ApiError, KafkaError or ClientError says why it cannot be sent."""
        self._rates.spend(record.size_bytes)
        if self._failure is not None:
            if asyncio.get_running_loop().time() < self._failed_at + FAILURE_KEPT_S:
                raise self._failure
            self._failure = None
        try:
            if record.partition is not None:
                await self._check_partition(record.partition)
            return await self._kafka.producer.send(
                self._topic,
                record.value,
                record.key,
                headers=record.headers,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
        except (KafkaError, ClientError) as error:
            if self._topic not in self._kafka.cluster.topology.topics:
                self._failure, self._failed_at = error, asyncio.get_running_loop().time()
            raise

    async def _check_partition(self, partition: int) -> None:
        """The producer would wait long for a partition that does not exist."""
        cluster = self._kafka.cluster
        known = cluster.topology.topics.get(self._topic)
        if known is None or known.error_code or not known.partitions:
            patience = cluster.patience(self._kafka.producer.settings.block_ms_max)
            await cluster.partitions_of(self._topic, auto_create=True, patience=patience)
            known = cluster.topology.topics[self._topic]
        if partition in known.partitions:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._partitions_asked_at + PARTITIONS_ASKED_AFTER_S:
            self._partitions_asked_at = now
            await cluster.refresh([self._topic])
            known = cluster.topology.topics[self._topic]
        if partition not in known.partitions:
            raise refusal(
                404,
                NOT_FOUND,
                f"There is no partition {partition}: topic {self._topic} has {known.partition_count}.",
            )

"""aiokafka's clients that count what is acknowledged and what is consumed.

In: the keywords of the client, and a counter. Out: the same class with the same methods. Records count when
the broker has acknowledged them; those of a transaction when it is committed.
Does not know: how counts travel.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiokafka  # type: ignore[import-untyped]

from barnabas.audit.clients.keyword_login import settings_of_keywords
from barnabas.audit.core.messages import NO_OFFSET, NO_PARTITION
from barnabas.audit.core.tiers import PRODUCER, consumer
from barnabas.audit.counters.audit_counter import AuditCounter, TransactionCounts

NS_A_MS = 1_000_000
LOG_APPEND_TIME = 1


class AIOKafkaProducer(aiokafka.AIOKafkaProducer):  # type: ignore[misc]
    """In place of `aiokafka.AIOKafkaProducer`; `audit` is the counter, made from the other keywords if not
    given."""

    def __init__(self, *, audit: AuditCounter | None = None, **configs: Any) -> None:
        self.audit = audit or AuditCounter(settings_of_keywords(configs), PRODUCER)
        self._in_transaction: TransactionCounts | None = None
        super().__init__(**configs)

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Any = None,
    ) -> Any:
        if (
            timestamp_ms is None
        ):  # aiokafka would take the same time, and tell it only with an acknowledgement
            timestamp_ms = time.time_ns() // NS_A_MS
        future = await super().send(topic, value, key, partition, timestamp_ms, headers)
        has_serializer = self._key_serializer is not None or self._value_serializer is not None
        parts = None if has_serializer else (key, value)
        self._count_when_done(future, topic, [timestamp_ms], partition, parts=parts)
        return future

    def create_batch(self) -> Any:
        builder = super().create_batch()
        append, builder.audited_ms = builder.append, []

        def counted(**record: Any) -> Any:
            metadata = append(**record)
            if metadata is not None:
                builder.audited_ms.append(metadata.timestamp)
            return metadata

        builder.append = counted
        return builder

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> Any:
        future = await super().send_batch(batch, topic, partition=partition)
        self._count_when_done(future, topic, getattr(batch, "audited_ms", []), partition, is_batch=True)
        return future

    def _count_when_done(
        self,
        future: asyncio.Future[Any],
        topic: str,
        sent_ms: list[int],
        sent_to: int | None,
        *,
        is_batch: bool = False,
        parts: tuple[Any, Any] | None = None,
    ) -> None:
        counts = self._in_transaction or self.audit

        def done(settled: asyncio.Future[Any]) -> None:
            if settled.cancelled() or settled.exception() is not None:
                for each in sent_ms:
                    self.audit.failed(topic, each)
                return
            written = settled.result()
            offset = NO_OFFSET
            if written is None:  # acks=0: what was sent is all that is known
                written_ms, partition = sent_ms, NO_PARTITION if sent_to is None else sent_to
            else:
                partition, has_append_time = written.partition, written.timestamp_type == LOG_APPEND_TIME
                offset = max(written.offset, NO_OFFSET)
                keeps = is_batch and not has_append_time
                written_ms = sent_ms if keeps else [written.timestamp] * len(sent_ms)
            for each in written_ms:
                content = self.audit.content(*parts, each) if parts is not None else None
                counts.count(topic, each, partition, content=content, offset=offset)

        future.add_done_callback(done)

    async def flush(self) -> None:
        await super().flush()
        self.audit.send_soon()

    async def begin_transaction(self) -> None:
        await super().begin_transaction()
        self._in_transaction = self.audit.in_transaction()

    async def commit_transaction(self) -> None:
        await super().commit_transaction()
        await self._end_transaction(is_commit=True)

    async def abort_transaction(self) -> None:
        await super().abort_transaction()
        await self._end_transaction(is_commit=False)

    async def _end_transaction(self, *, is_commit: bool) -> None:
        counts, self._in_transaction = self._in_transaction, None
        if counts is None:
            return
        await asyncio.sleep(0)  # callbacks of records that were acknowledged last
        if is_commit:
            counts.commit()
        else:
            counts.abort()

    async def stop(self) -> None:
        await super().stop()
        await asyncio.to_thread(self.audit.close)


class AIOKafkaConsumer(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]
    """In place of `aiokafka.AIOKafkaConsumer`."""

    def __init__(self, *topics: str, audit: AuditCounter | None = None, **configs: Any) -> None:
        group = configs.get("group_id") or "(none)"
        self.audit = audit or AuditCounter(settings_of_keywords(configs), consumer(group))
        self.audit.sees_aborted = configs.get("isolation_level") != "read_committed"
        super().__init__(*topics, **configs)

    async def getone(self, *partitions: Any) -> Any:
        record = await super().getone(*partitions)
        self._count(record)
        return record

    def _count(self, record: Any) -> None:
        content = self.audit.content(record.key, record.value, record.timestamp)
        place = (record.topic, record.timestamp, record.partition)
        self.audit.count(*place, content=content, offset=record.offset)

    async def commit(self, *arguments: Any, **named: Any) -> None:
        await super().commit(*arguments, **named)
        self.audit.send_soon()

    async def getmany(self, *partitions: Any, **named: Any) -> Any:
        found = await super().getmany(*partitions, **named)
        for records in found.values():
            for record in records:
                self._count(record)
        return found

    async def stop(self) -> None:
        await super().stop()
        await asyncio.to_thread(self.audit.close)

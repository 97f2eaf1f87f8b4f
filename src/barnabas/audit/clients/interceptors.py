"""Interceptors that count: for the project's own producer and consumers.

In: acknowledged batches and consumed records. Out: counts.
`Producer(cluster, interceptors=[AuditProducer(counter)])`.
Does not know: how counts travel.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.audit.counters.audit_counter import AuditCounter
from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.interceptors import SettledBatch
from barnabas.protocol import KafkaError


class AuditProducer:
    """Counts records when their batch is acknowledged, or given up."""

    def __init__(self, audit: AuditCounter) -> None:
        self.audit = audit

    def on_acknowledgement(self, batch: SettledBatch, error: KafkaError | ClientError | None) -> None:
        topic, partition = batch.where
        note = self.audit.count if error is None else self.audit.failed
        has_append_time = batch.append_time_ms >= 0
        if has_append_time and not self.audit.settings.sums:
            note(topic, batch.append_time_ms, partition, len(batch.records))
            return
        for record in batch.records:
            stamp = batch.append_time_ms if has_append_time else record.timestamp
            if error is None:
                self.audit.count(
                    topic, stamp, partition, content=self.audit.content(record.key, record.value, stamp)
                )
            else:
                self.audit.failed(topic, stamp, partition)


class AuditConsumer:
    """Counts records that a poll returns. `sees_aborted`: of a consumer without `read_committed`."""

    def __init__(self, audit: AuditCounter, *, sees_aborted: bool = False) -> None:
        self.audit = audit
        audit.sees_aborted = sees_aborted

    def on_consume(self, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            stamp = record.timestamp
            content = self.audit.content(record.key, record.value, stamp)
            self.audit.count(record.topic, stamp, record.partition, content=content, offset=record.offset)

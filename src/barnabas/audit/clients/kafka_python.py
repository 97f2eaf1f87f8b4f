"""kafka-python's clients that count what is acknowledged and what is consumed.

In: the keywords of the client, and a counter. Out: the same class with the same methods. Records count when
the broker has acknowledged them; those of a transaction when it is committed.
Does not know: how counts travel.
"""

from __future__ import annotations

from typing import Any

import kafka  # type: ignore[import-untyped]

from barnabas.audit.clients.keyword_login import settings_of_keywords
from barnabas.audit.core.messages import NO_OFFSET
from barnabas.audit.core.tiers import PRODUCER, consumer
from barnabas.audit.counters.audit_counter import AuditCounter, TransactionCounts

NO_TIMESTAMP = -1


class KafkaProducer(kafka.KafkaProducer):  # type: ignore[misc]
    """In place of `kafka.KafkaProducer`; `audit` is the counter, made from other keywords if not given."""

    def __init__(self, *, audit: AuditCounter | None = None, **configs: Any) -> None:
        self.audit = audit or AuditCounter(settings_of_keywords(configs), PRODUCER)
        self._in_transaction: TransactionCounts | None = None
        super().__init__(**configs)

    def send(self, topic: str, *arguments: Any, **named: Any) -> Any:
        future = super().send(topic, *arguments, **named)
        counts = self._in_transaction or self.audit
        sent_ms = named.get("timestamp_ms") or (arguments[4] if len(arguments) > 4 else None)
        parts = self._parts(arguments, named)

        def acknowledged(written: Any) -> None:
            stamp = written.timestamp
            content = self.audit.content(*parts, stamp) if parts is not None else None
            offset = max(written.offset, NO_OFFSET)
            counts.count(written.topic, stamp, written.partition, content=content, offset=offset)

        future.add_callback(acknowledged)
        future.add_errback(lambda error: self.audit.failed(topic, sent_ms or NO_TIMESTAMP))
        return future

    def _parts(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any] | None:
        """Key and value as they are sent; None if a serializer changes them."""
        if self.config["key_serializer"] is not None or self.config["value_serializer"] is not None:
            return None
        value, key = (*arguments, None, None)[:2]
        return named.get("key", key), named.get("value", value)

    def flush(self, *arguments: Any, **named: Any) -> Any:
        done = super().flush(*arguments, **named)
        self.audit.send_soon()
        return done

    def begin_transaction(self) -> Any:
        result = super().begin_transaction()
        self._in_transaction = self.audit.in_transaction()
        return result

    def commit_transaction(self) -> Any:
        result = super().commit_transaction()
        self._end_transaction(is_commit=True)
        return result

    def abort_transaction(self) -> Any:
        result = super().abort_transaction()
        self._end_transaction(is_commit=False)
        return result

    def _end_transaction(self, *, is_commit: bool) -> None:
        counts, self._in_transaction = self._in_transaction, None
        if counts is not None and is_commit:
            counts.commit()
        elif counts is not None:
            counts.abort()

    def close(self, *arguments: Any, **named: Any) -> Any:
        result = super().close(*arguments, **named)
        self.audit.close()
        return result


class KafkaConsumer(kafka.KafkaConsumer):  # type: ignore[misc]
    """In place of `kafka.KafkaConsumer`."""

    def __init__(self, *topics: str, audit: AuditCounter | None = None, **configs: Any) -> None:
        group = configs.get("group_id") or "(none)"
        self.audit = audit or AuditCounter(settings_of_keywords(configs), consumer(group))
        self.audit.sees_aborted = configs.get("isolation_level") != "read_committed"
        super().__init__(*topics, **configs)

    def poll(self, *arguments: Any, update_offsets: bool = True, **named: Any) -> Any:
        found = super().poll(*arguments, update_offsets=update_offsets, **named)
        if update_offsets:  # otherwise the iterator asks: it counts what it hands out
            for records in found.values():
                for record in records:
                    self._count(record)
        return found

    def __next__(self) -> Any:
        record = super().__next__()
        self._count(record)
        return record

    def _count(self, record: Any) -> None:
        content = self.audit.content(record.key, record.value, record.timestamp)
        place = (record.topic, record.timestamp, record.partition)
        self.audit.count(*place, content=content, offset=record.offset)

    def commit(self, *arguments: Any, **named: Any) -> Any:
        done = super().commit(*arguments, **named)
        self.audit.send_soon()
        return done

    def close(self, *arguments: Any, **named: Any) -> Any:
        result = super().close(*arguments, **named)
        self.audit.close()
        return result

"""Interceptors: observers of a producer's records and acknowledgements, and of a consumer's records.

In: headers of a record that is sent, what became of a batch, the records that a poll returns. Out: headers;
nothing else of a record can be changed. Errors of interceptors are logged and do not reach the caller (as
Kafka's `interceptor.classes`).
Does not know: what interceptors do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.records.record import Headers, Record

log = logging.getLogger("barnabas.client")


class SettledBatch(Protocol):
    """A batch that is written or given up."""

    append_time_ms: int  # of all its records, if the topic has LogAppendTime; else -1

    @property
    def where(self) -> TopicPartition: ...

    @property
    def records(self) -> Sequence[Record]: ...


class ProducerInterceptor(Protocol):
    def on_acknowledgement(self, batch: SettledBatch, error: KafkaError | ClientError | None) -> None:
        """The batch is written, or given up with an error. Called on the producer's event loop."""


class SendInterceptor(Protocol):
    """A `ProducerInterceptor` may have this method too."""

    def on_send(self, topic: str, headers: Headers) -> Headers:
        """The headers with which a record is sent. Called for every record, so it should be quick."""


class ConsumerInterceptor(Protocol):
    def on_consume(self, records: Sequence[ConsumerRecord]) -> None:
        """The records that a poll is about to return."""


def that_send(interceptors: Iterable[Any]) -> tuple[SendInterceptor, ...]:
    """Interceptors that have `on_send`."""
    return tuple(each for each in interceptors if callable(getattr(each, "on_send", None)))


def sent_headers(interceptors: Iterable[SendInterceptor], topic: str, headers: Headers) -> Headers:
    for each in interceptors:
        try:
            headers = each.on_send(topic, headers)
        except Exception:
            log.exception("the interceptor %r failed", each)
    return headers


def tell_acknowledged(
    interceptors: Iterable[ProducerInterceptor], batch: SettledBatch, error: KafkaError | ClientError | None
) -> None:
    for each in interceptors:
        try:
            each.on_acknowledgement(batch, error)
        except Exception:
            log.exception("the interceptor %r failed", each)


def tell_consumed(interceptors: Iterable[ConsumerInterceptor], records: Sequence[ConsumerRecord]) -> None:
    for each in interceptors:
        try:
            each.on_consume(records)
        except Exception:
            log.exception("the interceptor %r failed", each)

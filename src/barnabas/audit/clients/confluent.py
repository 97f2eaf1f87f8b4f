"""confluent-kafka's clients that count what is delivered and what is consumed.

In: the configuration of the client, and a counter. Out: the same class with the same methods. Records count
when their delivery report comes, so `poll` or `flush` must be called, as ever; those of a transaction when it
is committed. `AuditedProducer` and `AuditedConsumer` are mixed in before any subclass of confluent-kafka's:
`class Mine(AuditedProducer, SerializingProducer)`. Does not know: how counts travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import confluent_kafka

from barnabas.audit.clients.librdkafka_login import login_of
from barnabas.audit.core.messages import NO_OFFSET
from barnabas.audit.core.tiers import PRODUCER, consumer
from barnabas.audit.counters.audit_counter import AuditCounter, AuditSettings, TransactionCounts

OnDelivery = Callable[[Any, Any], None]
CALLBACK_AT = 3  # position in `produce` behind the topic: after value, key and partition
ON_DELIVERY_NAMES = ("on_delivery", "callback")


def settings_of(config: Mapping[str, Any]) -> AuditSettings:
    """The settings of a client's counter: the same brokers and the same login."""
    servers = config.get("bootstrap.servers") or config.get("metadata.broker.list")
    return AuditSettings.with_login({**config, "bootstrap.servers": servers}, login_of(config))


def offset_of(message: Any) -> int:
    """The offset of a record; it is not known with acks=0."""
    offset = message.offset()
    return NO_OFFSET if offset is None or offset < 0 else int(offset)


class AuditedProducer:
    """A mixin: counts acknowledged records as the tier `producer`. Give `audit`, or it is made."""

    def __init__(self, config: Mapping[str, Any], *arguments: Any, audit: AuditCounter | None = None) -> None:
        own = dict(config)
        self._on_delivery: OnDelivery | None = own.pop("on_delivery", None) or own.pop("dr_cb", None)
        self.audit = audit or AuditCounter(settings_of(own), PRODUCER)
        self._in_transaction: TransactionCounts | None = None
        super().__init__(own, *arguments)  # type: ignore[call-arg]

    def produce(self, topic: str, *arguments: Any, **named: Any) -> None:
        given = list(arguments)
        callback = self._on_delivery
        for name in ON_DELIVERY_NAMES:
            callback = named.pop(name, None) or callback
        if len(given) <= CALLBACK_AT:
            super().produce(topic, *given, on_delivery=self._counting(callback), **named)  # type: ignore[misc]
            return
        for position in range(CALLBACK_AT, len(given)):  # `callback` and `on_delivery` are two positions
            if callable(given[position]):
                callback, given[position] = given[position], None
        given[CALLBACK_AT] = self._counting(callback)
        super().produce(topic, *given, **named)  # type: ignore[misc]

    def produce_batch(self, topic: str, messages: list[dict[str, Any]], *arguments: Any, **named: Any) -> Any:
        callback = named.pop("on_delivery", None) or named.pop("callback", None) or self._on_delivery
        for message in messages:
            message["callback"] = self._counting(message.get("callback") or callback)
        return super().produce_batch(topic, messages, *arguments, **named)  # type: ignore[misc]

    def _counting(self, callback: OnDelivery | None) -> OnDelivery:
        counts = self._in_transaction or self.audit

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                stamp = message.timestamp()[1]
                content = self.audit.content(message.key(), message.value(), stamp)
                place = (message.topic(), stamp, message.partition())
                counts.count(*place, content=content, offset=offset_of(message))
            else:
                self.audit.failed(message.topic(), message.timestamp()[1], message.partition())
            if callback is not None:
                callback(error, message)

        return delivered

    def flush(self, *arguments: Any, **named: Any) -> Any:
        left = super().flush(*arguments, **named)  # type: ignore[misc]
        self.audit.send_soon()
        return left

    def begin_transaction(self, *arguments: Any) -> None:
        super().begin_transaction(*arguments)  # type: ignore[misc]
        self._in_transaction = self.audit.in_transaction()

    def commit_transaction(self, *arguments: Any) -> None:
        super().commit_transaction(*arguments)  # type: ignore[misc]
        self._end_transaction(is_commit=True)

    def abort_transaction(self, *arguments: Any) -> None:
        super().abort_transaction(*arguments)  # type: ignore[misc]
        self._end_transaction(is_commit=False)

    def _end_transaction(self, *, is_commit: bool) -> None:
        counts, self._in_transaction = self._in_transaction, None
        if counts is None:
            return
        super().poll(0)  # type: ignore[misc]  # reports that wait to be delivered
        if is_commit:
            counts.commit()
        else:
            counts.abort()


class AuditedConsumer:
    """A mixin: counts consumed records as the tier of its group."""

    def __init__(self, config: Mapping[str, Any], *arguments: Any, audit: AuditCounter | None = None) -> None:
        self.audit = audit or AuditCounter(settings_of(config), consumer(config["group.id"]))
        self.audit.sees_aborted = config.get("isolation.level") == "read_uncommitted"
        super().__init__(dict(config), *arguments)  # type: ignore[call-arg]

    def poll(self, *arguments: Any, **named: Any) -> Any:
        message = super().poll(*arguments, **named)  # type: ignore[misc]
        self._count(message)
        return message

    def consume(self, *arguments: Any, **named: Any) -> Any:
        messages = super().consume(*arguments, **named)  # type: ignore[misc]
        for message in messages:
            self._count(message)
        return messages

    def _count(self, message: Any) -> None:
        if message is not None and message.error() is None:
            stamp = message.timestamp()[1]
            content = self.audit.content(message.key(), message.value(), stamp)
            place = (message.topic(), stamp, message.partition())
            self.audit.count(*place, content=content, offset=offset_of(message))

    def commit(self, *arguments: Any, **named: Any) -> Any:
        done = super().commit(*arguments, **named)  # type: ignore[misc]
        self.audit.send_soon()
        return done

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        self.audit.close()


class Producer(AuditedProducer, confluent_kafka.Producer):
    """In place of `confluent_kafka.Producer`."""


class SerializingProducer(AuditedProducer, confluent_kafka.SerializingProducer):
    """In place of `confluent_kafka.SerializingProducer`."""


class Consumer(AuditedConsumer, confluent_kafka.Consumer):
    """In place of `confluent_kafka.Consumer`."""


class DeserializingConsumer(AuditedConsumer, confluent_kafka.DeserializingConsumer):
    """In place of `confluent_kafka.DeserializingConsumer`."""

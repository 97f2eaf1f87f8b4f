"""Producing and reading with confluent-kafka, whole topics in, whole topics out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

TIMEOUT_S = 30.0


def producer(bootstrap: str, **settings: object) -> Producer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **named})


def produce(
    bootstrap: str, topic: str, messages: Iterable[Mapping[str, Any]], **settings: object
) -> list[Message]:
    """Produces each message (keyword arguments of `Producer.produce`); what was delivered, in order."""
    delivered: list[Message] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        delivered.append(message)

    ours = producer(bootstrap, **settings)
    for message in messages:
        while True:
            try:
                ours.produce(topic, on_delivery=on_delivery, **message)
                break
            except BufferError:
                ours.poll(0.1)
    assert ours.flush(TIMEOUT_S) == 0, "messages were not delivered in time"
    return delivered


def consumer(bootstrap: str, **settings: object) -> Consumer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            **named,
        }
    )


def poll_until(reader: Consumer, count: int) -> list[Message]:
    """The next `count` messages; an error of the consumer is raised."""
    deadline = time.monotonic() + TIMEOUT_S
    found: list[Message] = []
    while len(found) < count:
        for message in reader.consume(count - len(found), timeout=0.5):
            if message.error() is not None:
                raise KafkaException(message.error())
            found.append(message)
        if time.monotonic() > deadline:
            raise AssertionError(f"{len(found)} of {count} messages came in time")
    return found


def read(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    offset: int = OFFSET_BEGINNING,
    partitions: Sequence[int] = (0,),
    **settings: object,
) -> list[Message]:
    """The first `count` messages from an offset on, with partitions assigned by hand."""
    reader = consumer(bootstrap, **settings)
    try:
        reader.assign([TopicPartition(topic, partition, offset) for partition in partitions])
        return poll_until(reader, count)
    finally:
        reader.close()

"""Real clients under quotas: never faster than allowed, told why, and nothing lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address

from .conftest import NewTopicName, Served
from .librdkafka import produce, read

RATE = 400_000.0
WINDOW_S = 10  # what a burst may use up: a window's worth
COUNT, SIZE = 600, 10_000  # six megabytes


@contextmanager
def quota(broker: Served, client_id: str, **values: float) -> Iterator[None]:
    async def change(changes: dict[str, float | None]) -> None:
        async with Cluster([Address("127.0.0.1", broker.port)]) as cluster:
            await Admin(cluster).alter_quotas({"client-id": client_id}, changes)

    asyncio.run(change(dict(values)))
    try:
        yield
    finally:
        asyncio.run(change(dict.fromkeys(values)))


def allowed(seconds: float) -> float:
    """What may have passed by now: the burst, the rate, and one request that was too much."""
    return RATE * (WINDOW_S + seconds) * 1.05 + 200_000


def produce_throttled(
    broker: Served, topic: str, client_id: str, count: int
) -> tuple[list[int], list[float]]:
    """Offsets of what was delivered, and the waits that the client was told of."""
    offsets: list[int] = []
    waits: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": client_id,
            "batch.size": 100_000,
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
    )
    for _ in range(count):
        producer.produce(
            topic, b"x" * SIZE, on_delivery=lambda error, message: offsets.append(message.offset())
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    return offsets, waits


def test_a_producer_is_not_faster_than_its_quota(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    with quota(broker, "greedy-producer", producer_byte_rate=RATE):
        started = time.monotonic()
        offsets, waits = produce_throttled(broker, topic, "greedy-producer", COUNT)
        assert allowed(time.monotonic() - started) >= COUNT * SIZE
    assert offsets == list(range(COUNT))
    assert waits


def test_a_consumer_is_not_faster_than_its_quota(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    produce(broker.bootstrap, topic, [{"value": b"%d" % n + b"x" * SIZE} for n in range(COUNT)])
    with quota(broker, "greedy-consumer", consumer_byte_rate=RATE):
        started = time.monotonic()
        found = read(broker.bootstrap, topic, COUNT, client_id="greedy-consumer")
        assert allowed(time.monotonic() - started) >= COUNT * SIZE
    assert [message.offset() for message in found] == list(range(COUNT))


def test_clients_without_a_quota_are_not_held_back(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    with quota(broker, "somebody", producer_byte_rate=1000.0, request_percentage=0.001):
        _, waits = produce_throttled(broker, topic, "somebody-else", 200)
    assert not waits

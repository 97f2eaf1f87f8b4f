"""aiokafka: produce, assign, seek, offsets by time and the admin client, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError

from barnabas.testing.waiting import until

from .conftest import NewTopicName, Served

TIMEOUT_S = 60


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, TIMEOUT_S))


@asynccontextmanager
async def started(client: Any) -> AsyncIterator[Any]:
    await client.start()
    try:
        yield client
    finally:
        stop = client.close if isinstance(client, AIOKafkaAdminClient) else client.stop
        await stop()


@asynccontextmanager
async def reading(broker: Served, *where: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    async with started(consumer):
        consumer.assign(where)
        yield consumer


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_with_keys_headers_and_timestamps(
    broker: Served, new_topic: NewTopicName, compression: str | None
) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    sent = [
        (
            None if n % 3 == 0 else b"k%d" % n,
            None if n % 3 == 1 else b"v%d" % n * 10,
            1_000 + n,
            [("h", b"%d" % n)],
        )
        for n in range(200)
    ]

    async def work() -> None:
        settings = {"compression_type": compression, "linger_ms": 20}
        async with started(AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **settings)) as producer:
            futures = [
                await producer.send(topic, value, key, timestamp_ms=timestamp, headers=headers)
                for key, value, timestamp, headers in sent
            ]
            assert [(await future).offset for future in futures] == list(range(200))
        async with reading(broker, TopicPartition(topic, 0)) as consumer:
            got = [await consumer.getone() for _ in sent]
        assert [(r.key, r.value, r.timestamp, list(r.headers)) for r in got] == sent

    run(work())


@pytest.mark.parametrize(
    "settings", [{"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}]
)
def test_acks_and_idempotence(broker: Served, new_topic: NewTopicName, settings: dict[str, Any]) -> None:
    topic = new_topic(partitions=2)

    async def work() -> None:
        async with started(AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **settings)) as producer:
            for n in range(50):
                await producer.send(topic, b"%d" % n, partition=1)
            await producer.flush()
        async with reading(broker, TopicPartition(topic, 1)) as consumer:
            assert [(await consumer.getone()).value for _ in range(50)] == [b"%d" % n for n in range(50)]

    run(work())


def test_positions_ends_and_times(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    where = TopicPartition(topic, 0)

    async def work() -> None:
        async with started(AIOKafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            for n in range(30):
                await producer.send_and_wait(topic, b"%d" % n, timestamp_ms=1_000 * (n + 1))
        async with reading(broker, where) as consumer:
            assert await consumer.beginning_offsets([where]) == {where: 0}
            assert await consumer.end_offsets([where]) == {where: 30}
            found = await consumer.offsets_for_times({where: 15_500})
            assert (found[where].offset, found[where].timestamp) == (15, 16_000)
            consumer.seek(where, 28)
            assert (await consumer.getone()).offset == 28
            await consumer.seek_to_beginning(where)
            assert (await consumer.getone()).offset == 0
            await consumer.seek_to_end(where)
            assert await consumer.position(where) == 30

    run(work())


def test_a_message_over_the_limit_is_refused(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"max.message.bytes": "1000"})

    async def work() -> None:
        async with started(AIOKafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, b"x" * 5_000)

    run(work())


def test_topics_partitions_and_settings_through_the_admin_client(
    broker: Served, fresh_name: Callable[[], str]
) -> None:
    topic = fresh_name()

    async def work() -> None:
        async with started(AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            created = await admin.create_topics(
                [NewTopic(topic, 2, 1, topic_configs={"retention.ms": "777777"})]
            )
            assert [error for _, error, *_ in created.topic_errors] == [0]
            assert topic in await admin.list_topics()

            await admin.create_partitions({topic: NewPartitions(4)})

            async def has_grown() -> bool:
                return len((await admin.describe_topics([topic]))[0]["partitions"]) == 4

            await until(has_grown)

            [answer] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            [(_, _, _, _, entries)] = answer.resources
            assert {entry[0]: entry[1] for entry in entries}["retention.ms"] == "777777"

            assert [node["port"] for node in (await admin.describe_cluster())["brokers"]] == [broker.port]
            deleted = await admin.delete_topics([topic])
            assert [error for _, error in deleted.topic_error_codes] == [0]

    run(work())

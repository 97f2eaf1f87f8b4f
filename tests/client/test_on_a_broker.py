"""Admin, producer and consumer on a real broker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ConfigSource, ResourceType
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.keys import has_keys
from barnabas.client.partitioner import partition_for_key
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.compression import Compression
from barnabas.testing.waiting import until

READ_TIMEOUT_S = 20.0


@asynccontextmanager
async def admin_of(broker: str) -> AsyncIterator[Admin]:
    async with Cluster(parse_bootstrap(broker)) as cluster:
        yield Admin(cluster)


def on(broker: str, use: Callable[[Admin], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with admin_of(broker) as admin:
            return await use(admin)

    return asyncio.run(main())


async def read(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    async with asyncio.timeout(READ_TIMEOUT_S):
        while len(records) < count:
            records += await consumer.poll(1000)
    return records


async def created(admin: Admin, topic: NewTopic) -> bytes:
    """Create a topic, and wait until its leaders serve it: metadata shows it a moment before."""
    topic_id = await admin.create_topic(topic)
    count = await admin.cluster.partitions_of(topic.name, auto_create=True)
    await admin.list_offsets({TopicPartition(topic.name, each): OffsetSpec.LATEST for each in range(count)})
    return topic_id


def test_a_topic_is_created_described_and_deleted(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        topic_id = await created(admin, NewTopic(topic, partitions=3))
        [described] = await admin.describe_topics([topic])
        assert (described.name, described.topic_id, len(described.partitions)) == (topic, topic_id, 3)
        assert described.partitions[0].leader == 1
        assert topic in [each.name for each in await admin.list_topics()]
        assert await admin.topic_name(topic_id) == topic
        await admin.delete_topics([topic])

        async def is_gone() -> bool:
            return topic not in [each.name for each in await admin.list_topics()]

        await until(is_gone)
        assert await admin.topic_name(topic_id) is None

    on(broker, use)


def test_many_partitions_are_described_page_by_page(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        for suffix in "abc":
            await created(admin, NewTopic(f"{topic}-{suffix}", partitions=5))
        described = await admin.describe_topics(
            [f"{topic}-{suffix}" for suffix in "cab"], partitions_per_response=2
        )
        assert [each.name[-1] for each in described] == ["a", "b", "c"]
        assert [[p.index for p in each.partitions] for each in described] == [[0, 1, 2, 3, 4]] * 3

    on(broker, use)


def test_a_broker_without_the_paging_api_is_asked_by_metadata(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic, partitions=2))
        connection = await admin.cluster.any_connection()
        del connection.versions[75]
        [described] = await admin.describe_topics([topic])
        assert [partition.index for partition in described.partitions] == [0, 1]
        assert described.partitions[0].elr is None

    on(broker, use)


def test_an_existing_topic_cannot_be_created_again(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic))
        await created(admin, NewTopic(topic))

    with pytest.raises(KafkaError, match=f"Topic '{topic}' already exists.") as caught:
        on(broker, use)
    assert caught.value.code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_settings_of_a_topic_are_read_and_changed(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic, configs={"retention.ms": "1000"}))
        resource = ConfigResource(ResourceType.TOPIC, topic)

        async def retention() -> tuple[str | None, int]:
            entries = (await admin.describe_configs([resource]))[resource]
            [entry] = [each for each in entries if each.name == "retention.ms"]
            return entry.value, entry.source

        async def shows(value: str, source: ConfigSource) -> None:
            async def it_does() -> bool:
                return await retention() == (value, source)

            await until(it_does, READ_TIMEOUT_S, f"{value} from {source.name}")

        assert await retention() == ("1000", ConfigSource.TOPIC)
        await admin.alter_configs(resource, {"retention.ms": "2000"})
        await shows("2000", ConfigSource.TOPIC)
        await admin.alter_configs(resource, {"retention.ms": None})
        await shows("604800000", ConfigSource.DEFAULT)

    on(broker, use)


def test_more_partitions_are_made(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic, partitions=1))
        await admin.create_partitions({topic: 3})

        async def has_grown() -> bool:
            return len((await admin.describe_topics([topic]))[0].partitions) == 3

        await until(has_grown, READ_TIMEOUT_S)

    on(broker, use)


def test_the_cluster_describes_itself(broker: str) -> None:
    async def use(admin: Admin) -> None:
        described = await admin.describe_cluster()
        [node] = described.nodes
        assert str(node.address) == broker
        quorum = await admin.describe_quorum()
        assert quorum.leader_id == node.id
        assert [voter.id for voter in quorum.voters] == [node.id]
        assert (await admin.api_versions(node))[3] == (0, 13)
        [directory] = (await admin.describe_log_dirs([node]))[node.id]
        assert directory.error_code == 0

    on(broker, use)


@pytest.mark.parametrize("compression", list(Compression), ids=lambda codec: codec.name.lower())
def test_records_come_back_as_they_were_sent(broker: str, topic: str, compression: Compression) -> None:
    sent = [
        (None, b"plain", ()),
        (b"key", None, ()),
        (b"", b"", (("h", b"x"), ("empty", b""), ("null", None))),
        ("schlüssel".encode(), bytes(range(256)) * 40, ()),
    ]

    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic))
        settings = ProducerSettings(compression=compression, linger_ms=50)
        async with Producer(admin.cluster, settings) as producer:
            for key, value, headers in sent:
                await producer.send(topic, value, key, headers=headers, timestamp_ms=1_700_000_000_000)
        consumer = Consumer(admin.cluster)
        consumer.assign({TopicPartition(topic, 0): 0})
        records = await read(consumer, len(sent))
        await consumer.close()
        assert [(each.key, each.value, each.headers) for each in records] == sent
        assert [each.offset for each in records] == [0, 1, 2, 3]
        assert {each.timestamp for each in records} == {1_700_000_000_000}

    on(broker, use)


@pytest.mark.parametrize(("acks", "idempotence"), [(0, False), (1, False), (-1, False), (-1, True)])
def test_every_kind_of_acknowledgement_writes(broker: str, topic: str, acks: int, idempotence: bool) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic, partitions=3))
        async with Producer(admin.cluster, ProducerSettings(acks=acks, idempotence=idempotence)) as producer:
            for number in range(300):
                await producer.send(topic, str(number).encode(), str(number).encode())
        consumer = Consumer(admin.cluster)
        consumer.assign({TopicPartition(topic, index): 0 for index in range(3)})
        records = await read(consumer, 300)
        await consumer.close()
        assert sorted(int(each.value) for each in records) == list(range(300))
        for each in records:
            assert each.partition == partition_for_key(each.key, 3)

    on(broker, use)


def test_offsets_are_found_by_time(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic))
        async with Producer(admin.cluster) as producer:
            for at in (1_000, 3_000, 2_000):
                await (await producer.send(topic, b"x", timestamp_ms=at))
        where = TopicPartition(topic, 0)

        async def at(spec: int) -> int:
            found = (await admin.list_offsets({where: spec}))[where]
            assert isinstance(found, FoundOffset)
            return found.offset

        assert await at(OffsetSpec.EARLIEST) == 0
        assert await at(OffsetSpec.LATEST) == 3
        assert await at(OffsetSpec.MAX_TIMESTAMP) == 1
        assert await at(1_500) == 1
        assert await at(4_000) == -1

    on(broker, use)


def test_a_partition_that_is_not_there_has_an_error_of_its_own(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic))
        wanted = {TopicPartition(topic, index): OffsetSpec.LATEST for index in (0, 9)}
        found = await admin.list_offsets(wanted)
        assert isinstance(found[TopicPartition(topic, 0)], FoundOffset)
        missing = found[TopicPartition(topic, 9)]
        assert isinstance(missing, KafkaError)
        assert missing.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    on(broker, use)


def test_a_waiting_consumer_gets_a_record_as_soon_as_it_is_written(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic))
        consumer = Consumer(admin.cluster, ConsumerSettings(fetch_wait_ms_max=20_000))
        await consumer.assign_at([TopicPartition(topic, 0)], OffsetSpec.LATEST)
        waiting = asyncio.create_task(read(consumer, 1))
        await asyncio.sleep(0)
        async with Producer(admin.cluster) as producer:
            await producer.send(topic, b"now")
        [record] = await waiting
        await consumer.close()
        assert record.value == b"now"

    on(broker, use)


def test_a_position_behind_the_end_starts_over_as_told(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic))
        async with Producer(admin.cluster) as producer:
            await producer.send(topic, b"first")
        where = TopicPartition(topic, 0)
        early = Consumer(admin.cluster, ConsumerSettings(on_out_of_range=OnOutOfRange.EARLIEST))
        early.assign({where: 100})
        [record] = await read(early, 1)
        await early.close()
        assert record.value == b"first"
        strict = Consumer(admin.cluster, ConsumerSettings(on_out_of_range=OnOutOfRange.FAIL))
        strict.assign({where: 100})
        with pytest.raises(KafkaError, match=f"offset 100 of {topic}-0 is not in the log"):
            await read(strict, 1)
        await strict.close()

    on(broker, use)


def test_keys_are_noticed(broker: str, topic: str) -> None:
    async def use(admin: Admin) -> None:
        await created(admin, NewTopic(topic, partitions=2))
        assert not await has_keys(admin.cluster, topic, 2)
        async with Producer(admin.cluster) as producer:
            await producer.send(topic, b"no key")
        assert not await has_keys(admin.cluster, topic, 2)
        async with Producer(admin.cluster) as producer:
            await producer.send(topic, b"value", b"key")
        assert await has_keys(admin.cluster, topic, 2)

    on(broker, use)

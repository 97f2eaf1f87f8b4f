"""Share consumers on a broker: acknowledgements, members that share partitions, lost members, bad input."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.share_groups import ShareGroupDescription, ShareOffset
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings
from barnabas.client.core.acknowledgements import AckBatch, AcknowledgeType
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.share_fetching import ShareRecord
from barnabas.client.core.share_session import AcquireMode, ShareLimits
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.testing.waiting import until

PATIENCE_S = 60.0
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def on(broker: str, use: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await use(cluster)

    asyncio.run(main())


async def made(cluster: Cluster, topic: str, partitions: int = 1) -> str:
    """A topic, and a share group of the same name that begins with its first record."""
    admin = Admin(cluster)
    await admin.create_topic(NewTopic(topic, partitions=partitions))
    await cluster.partitions_of(topic, auto_create=True)
    await admin.list_offsets({TopicPartition(topic, each): OffsetSpec.LATEST for each in range(partitions)})
    group = ConfigResource(ResourceType.GROUP, topic)
    await admin.alter_configs(group, {"share.auto.offset.reset": "earliest"})
    return topic


async def produce(cluster: Cluster, topic: str, count: int, partition: int = 0) -> None:
    async with Producer(cluster, ProducerSettings()) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=partition)


@asynccontextmanager
async def consumer_of(
    cluster: Cluster, topic: str, on_acknowledged: Any = None, **settings: Any
) -> AsyncIterator[ShareConsumer]:
    consumer = ShareConsumer(cluster, ShareConsumerSettings(topic, **settings), on_acknowledged)
    await consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        await consumer.close()


async def read(consumer: ShareConsumer, count: int, kind: AcknowledgeType | None = None) -> list[ShareRecord]:
    """Read so many records, and acknowledge all of them alike."""
    records: list[ShareRecord] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(records) < count:
            found = await consumer.poll(1_000)
            records += found
            for record in found if kind is not None else ():
                assert kind is not None
                consumer.acknowledge(record, kind)
    return records


def numbers(records: Sequence[ShareRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


def test_a_poll_accepts_the_records_of_the_poll_before(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        group = await made(cluster, topic)
        await produce(cluster, topic, 20)
        accepted: list[AckBatch] = []
        async with consumer_of(cluster, topic, lambda _, batches, __: accepted.extend(batches)) as consumer:
            assert numbers(await read(consumer, 20)) == list(range(20))
            await until(lambda: polled_with(consumer, accepted), PATIENCE_S, "a response")
            assert accepted == [AckBatch(0, 19, (ACCEPT,))]
        offsets = (await Admin(cluster).share_group_offsets([group]))[group]
        assert isinstance(offsets, dict)
        found = offsets[TopicPartition(topic, 0)]
        assert found is not None
        assert found.lag == 0

    on(broker, use)


async def polled_with(consumer: ShareConsumer, accepted: list[AckBatch]) -> bool:
    assert await consumer.poll(10) == []
    return bool(accepted)


def test_released_records_come_again_and_rejected_ones_do_not(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, 4)
        async with consumer_of(cluster, topic, explicit=True) as consumer:
            first = await read(consumer, 4)
            for record, kind in zip(first, (ACCEPT, RELEASE, REJECT, RELEASE), strict=True):
                consumer.acknowledge(record, kind)
            again = await read(consumer, 2, ACCEPT)
            assert [(record.offset, record.delivery_count) for record in again] == [(1, 2), (3, 2)]
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
            assert await consumer.poll(200) == []

    on(broker, use)


def test_explicit_acknowledgements_must_be_complete_before_the_next_poll(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, 2)
        async with consumer_of(cluster, topic, explicit=True) as consumer:
            first, second = await read(consumer, 2)
            consumer.acknowledge(first)
            with pytest.raises(ValueError, match="All records must be acknowledged"):
                await consumer.poll(100)
            consumer.acknowledge(second, REJECT)
            assert await consumer.poll(100) == []

    on(broker, use)


def test_a_renewed_record_stays_with_its_member(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, 1)
        async with consumer_of(cluster, topic, explicit=True) as consumer:
            [record] = await read(consumer, 1)
            for _ in range(3):
                consumer.acknowledge(record, RENEW)
                assert await consumer.commit() == {TopicPartition(topic, 0): None}
            consumer.acknowledge(record, ACCEPT)
            assert await consumer.commit() == {TopicPartition(topic, 0): None}

    on(broker, use)


def test_members_share_one_partition(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        limits = ShareLimits(records_max=5, acquire_mode=AcquireMode.RECORD_LIMIT, wait_ms_max=100)
        async with (
            consumer_of(cluster, topic, limits=limits) as one,
            consumer_of(cluster, topic, limits=limits) as other,
        ):
            await until(lambda: both_assigned(one, other), PATIENCE_S, "two members with partitions")
            await produce(cluster, topic, 100)
            records: list[ShareRecord] = []
            readers: set[int] = set()
            async with asyncio.timeout(PATIENCE_S):
                while len(records) < 100:
                    for reader in (one, other):
                        found = await reader.poll(100)
                        readers |= {id(reader)} if found else set()
                        records += found
            assert sorted(numbers(records)) == list(range(100))
            assert len(readers) == 2
            assert {record.delivery_count for record in records} == {1}

    on(broker, use)


async def both_assigned(*consumers: ShareConsumer) -> bool:
    for consumer in consumers:
        await consumer.poll(10)
    return all(consumer.assignment for consumer in consumers)


def test_records_of_a_member_that_closes_go_to_others(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, 10)
        async with consumer_of(cluster, topic) as one:
            assert len(await read(one, 10)) == 10
        async with consumer_of(cluster, topic) as other:
            again = await read(other, 10)
            assert [record.delivery_count for record in again] == [2] * 10

    on(broker, use)


def test_partitions_that_are_added_are_read(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, 1)
        async with consumer_of(cluster, topic) as consumer:
            await read(consumer, 1)
            await Admin(cluster).create_partitions({topic: 2})
            await until(lambda: has_leader(cluster, TopicPartition(topic, 1)))
            await produce(cluster, topic, 3, partition=1)
            assert {record.partition for record in await read(consumer, 3)} == {1}

    on(broker, use)


async def has_leader(cluster: Cluster, where: TopicPartition) -> bool:
    return (await cluster.refresh([where.topic])).leader(where) is not None


def test_an_administrator_sees_members_and_sets_offsets(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        group = await made(cluster, topic)
        await produce(cluster, topic, 5)
        admin = Admin(cluster)
        where = TopicPartition(topic, 0)
        async with consumer_of(cluster, topic) as consumer:
            await read(consumer, 5)
            await consumer.commit()
            described = (await admin.describe_share_groups([group]))[group]
            assert isinstance(described, ShareGroupDescription)
            [member] = described.members
            assert (described.state, member.member_id) == ("Stable", consumer.member_id)
            assert (member.assignment, member.subscription) == ((where,), (topic,))
            with pytest.raises(KafkaError) as refused:
                await admin.alter_share_group_offsets(group, {where: 2})
            assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
        assert await admin.alter_share_group_offsets(group, {where: 2}) == {where: None}
        offsets = (await admin.share_group_offsets([group]))[group]
        assert isinstance(offsets, dict)
        assert isinstance(offsets[where], ShareOffset)
        assert (offsets[where].start_offset, offsets[where].lag) == (2, 3)  # type: ignore[union-attr]
        async with consumer_of(cluster, topic) as consumer:
            assert numbers(await read(consumer, 3)) == [2, 3, 4]
            await consumer.commit()
        assert await admin.delete_share_group_offsets(group, [topic]) == {topic: None}
        assert (await admin.share_group_offsets([group]))[group] == {}
        assert await admin.delete_groups([group]) == {group: None}

    on(broker, use)


def test_a_group_of_another_type_is_refused(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await Admin(cluster).alter_offsets(f"{topic}-classic", {TopicPartition(topic, 0): 0})
        consumer = ShareConsumer(cluster, ShareConsumerSettings(f"{topic}-classic"))
        await consumer.subscribe([topic])
        try:
            with pytest.raises(KafkaError) as refused:
                await read(consumer, 1)
            assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND
        finally:
            await consumer.close()

    on(broker, use)

"""Consumers in groups on a broker: records, commits, rebalances, and members of librdkafka beside ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.fetcher import FetchSettings
from barnabas.client.consumers.group_consumer import GroupConsumer, GroupConsumerSettings, OffsetReset
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.client.groups.membership import GroupSettings
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.testing import apache

PATIENCE_S = 30.0
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def on(broker: str, use: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await use(cluster)

    asyncio.run(main())


async def made(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    admin = Admin(cluster)
    await admin.create_topic(NewTopic(topic, partitions=partitions))
    await cluster.partitions_of(topic, auto_create=True)
    await admin.list_offsets({TopicPartition(topic, each): OffsetSpec.LATEST for each in range(partitions)})


async def produce(cluster: Cluster, topic: str, *values: str, partition: int = 0) -> None:
    async with Producer(cluster, ProducerSettings()) as producer:
        for value in values:
            await producer.send(topic, value.encode(), partition=partition)


@asynccontextmanager
async def consumer_of(cluster: Cluster, group: str, **others: Any) -> AsyncIterator[GroupConsumer]:
    member = GroupSettings(
        group, session_timeout_ms=6_000, rebalance_timeout_ms=6_000, heartbeat_interval_ms=100
    )
    values: dict[str, Any] = {"reset": OffsetReset.EARLIEST, **others}
    consumer = GroupConsumer(cluster, GroupConsumerSettings(member, **values))
    try:
        yield consumer
    finally:
        await consumer.close()


def values(records: list[ConsumerRecord]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


async def read(consumer: GroupConsumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(records) < count:
            records += await consumer.poll(500)
    return records


async def until(condition: Callable[[], object], *consumers: GroupConsumer) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            for consumer in consumers:
                await consumer.poll(50)


def test_a_group_goes_on_where_it_committed(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, "a", "b", "c")
        where = TopicPartition(topic, 0)
        async with consumer_of(cluster, topic) as consumer:
            await consumer.subscribe([topic])
            assert consumer.assignment == ()
            assert values(await read(consumer, 3)) == ["a", "b", "c"]
            assert consumer.assignment == (where,)
            assert await consumer.committed([where]) == {}
            await consumer.commit({where: CommittedOffset(2, metadata="mine")})
            assert await consumer.committed([where]) == {where: CommittedOffset(2, metadata="mine")}
        async with consumer_of(cluster, topic) as consumer:
            await consumer.subscribe([topic])
            assert values(await read(consumer, 1)) == ["c"]
            await consumer.commit()
            assert (await consumer.committed([where]))[where].offset == 3

    on(broker, use)


def test_automatic_commits_cover_what_earlier_polls_returned(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, "a", "b")
        where = TopicPartition(topic, 0)
        async with consumer_of(cluster, topic, auto_commit=True, auto_commit_interval_ms=0) as consumer:
            await consumer.subscribe([topic])
            assert values(await consumer_poll_one(consumer)) == ["a"]
            assert await consumer.committed([where]) == {}
            await consumer.poll(0, bytes_max=1)
            assert (await consumer.committed([where]))[where].offset == 1
        async with consumer_of(cluster, topic) as consumer:
            assert (await consumer.committed([where]))[where].offset == 2  # when it left

    async def consumer_poll_one(consumer: GroupConsumer) -> list[ConsumerRecord]:
        async with asyncio.timeout(PATIENCE_S):
            while not (records := await consumer.poll(500, bytes_max=1)):
                pass
        return records

    on(broker, use)


def test_records_come_in_pieces_of_the_wanted_size(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic, partitions=2)
        await produce(cluster, topic, *("x" * 80 for _ in range(10)), partition=0)
        await produce(cluster, topic, "y" * 500, "z" * 80, partition=1)
        async with consumer_of(cluster, topic) as consumer:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            sizes = []
            while records := await consumer.poll(1000, bytes_max=250, bytes_min=None):
                sizes.append([len(record.value or b"") for record in records])
                await consumer.commit()
                for where, committed in (await consumer.committed(consumer.assignment)).items():
                    assert committed.offset == consumer.position(where)
            assert sorted(size for some in sizes for size in some) == [80] * 11 + [500]
            assert [500] in sizes
            assert all(sum(some) + 20 * len(some) <= 250 for some in sizes if some != [500])

    on(broker, use)


def test_a_poll_for_all_returns_all_that_is_there_without_waiting(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic, partitions=3)
        for partition in range(3):
            await produce(cluster, topic, *("x" * 1000 for _ in range(30)), partition=partition)
        fetch = FetchSettings(partition_bytes_max=5_000)
        async with consumer_of(cluster, topic, fetch=fetch) as consumer:
            consumer.assign(TopicPartition(topic, each) for each in range(3))
            async with asyncio.timeout(PATIENCE_S):
                assert len(await consumer.poll(10 * PATIENCE_S * 1000, bytes_min=None)) == 90

    on(broker, use)


def test_positions_are_moved_by_offset_end_and_time(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        async with Producer(cluster, ProducerSettings()) as producer:
            for index in range(5):
                await producer.send(topic, str(index).encode(), timestamp_ms=1_000 + index)
        where = TopicPartition(topic, 0)
        async with consumer_of(cluster, topic) as consumer:
            consumer.assign([where])
            consumer.seek(where, 3)
            assert values(await read(consumer, 2)) == ["3", "4"]
            await consumer.seek_to({where: OffsetSpec.EARLIEST})
            assert values(await read(consumer, 5))[:1] == ["0"]
            await consumer.seek_to({where: 1_002})
            assert values(await read(consumer, 3)) == ["2", "3", "4"]
            await consumer.seek_to({where: 9_000})
            assert consumer.position(where) == 5
            await consumer.seek_to({where: OffsetSpec.LATEST})
            assert await consumer.poll(50) == []
            consumer.seek(where, 0)
            consumer.pause([where])
            assert await consumer.poll(50) == []
            consumer.resume([where])
            assert len(await read(consumer, 5)) == 5
            with pytest.raises(ValueError, match="not assigned"):
                consumer.seek(TopicPartition(topic, 7), 0)
            with pytest.raises(ValueError, match="of its own choice"):
                await consumer.subscribe([topic])

    on(broker, use)


def test_an_offset_that_the_log_does_not_hold_is_reset_as_told(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, "a", "b")
        where = TopicPartition(topic, 0)
        async with consumer_of(cluster, topic) as consumer:
            consumer.assign([where])
            consumer.seek(where, 99)
            assert values(await read(consumer, 2)) == ["a", "b"]
        async with consumer_of(cluster, topic, reset=OffsetReset.LATEST) as consumer:
            consumer.assign([where])
            assert await consumer.poll(100) == []
            assert consumer.position(where) == 2
        async with consumer_of(cluster, topic, reset=OffsetReset.NONE) as consumer:
            consumer.assign([where])
            with pytest.raises(KafkaError, match=r"auto\.offset\.reset is none"):
                await consumer.poll(100)

    on(broker, use)


def test_a_rule_finds_topics_that_are_created_later(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, f"{topic}-one")
        async with consumer_of(cluster, topic, metadata_max_age_ms=50) as consumer:
            await consumer.subscribe_matching(lambda name: name.startswith(f"{topic}-"))
            await until(lambda: len(consumer.assignment) == 1, consumer)
            await made(cluster, f"{topic}-two", partitions=2)
            await until(lambda: len(consumer.assignment) == 3, consumer)
            assert consumer.topics == {f"{topic}-one", f"{topic}-two"}
            await consumer.unsubscribe()
            assert (consumer.topics, consumer.assignment) == (frozenset(), ())

    on(broker, use)


def test_two_members_share_the_partitions_and_nothing_is_lost(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic, partitions=4)
        async with consumer_of(cluster, topic) as one, consumer_of(cluster, topic) as two:
            await one.subscribe([topic])
            await two.subscribe([topic])
            await until(lambda: len(one.assignment) == 4, one)
            await until(lambda: len(one.assignment) == len(two.assignment) == 2, one, two)
            for partition in range(4):
                await produce(cluster, topic, str(partition), partition=partition)
            seen = values(await read(one, 2)) + values(await read(two, 2))
            assert sorted(seen) == ["0", "1", "2", "3"]
            await one.commit()
            await one.close()
            await until(lambda: len(two.assignment) == 4, two)
            await produce(cluster, topic, "again", partition=0)
            assert "again" in values(await read(two, 1))

    on(broker, use)


def test_a_member_that_does_not_poll_takes_part_in_rebalances(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic, partitions=2)
        async with consumer_of(cluster, topic) as idle, consumer_of(cluster, topic) as busy:
            await idle.subscribe([topic])
            await busy.subscribe([topic])
            await until(lambda: len(idle.assignment) == 2, idle)
            await until(lambda: len(busy.assignment) == 1, busy)
            await until(lambda: len(idle.assignment) == 1, busy)

    on(broker, use)


def test_records_returned_before_a_rebalance_are_not_returned_again_to_the_same_member(
    broker: str, topic: str
) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        await produce(cluster, topic, "a")
        async with consumer_of(cluster, topic) as one, consumer_of(cluster, topic) as two:
            await one.subscribe([topic])
            assert values(await read(one, 1)) == ["a"]
            await two.subscribe([topic])
            seen: dict[GroupConsumer, list[str]] = {one: ["a"], two: []}
            is_written = False
            async with asyncio.timeout(PATIENCE_S):
                while "b" not in seen[one] + seen[two]:
                    for consumer in (one, two):
                        seen[consumer] += values(await consumer.poll(50))
                    if two._identity.generation > 1 and not is_written:
                        await produce(cluster, topic, "b")
                        is_written = True
            assert seen[one] + seen[two] in (["a", "b"], ["a", "a", "b"])
            assert (
                seen[one].count("a") == 1
            )  # its position stayed; another member begins where it was committed

    on(broker, use)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_members_of_librdkafka_share_the_group(broker: str, topic: str, assignor: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic, partitions=4)
        theirs = ConfluentConsumer(
            {
                "bootstrap.servers": broker,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": assignor,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 100,
                "enable.auto.commit": False,
            }
        )
        seen: list[str] = []

        def poll_theirs() -> int:
            message = theirs.poll(0.05)
            if message is not None and message.error() is None:
                seen.append(message.value().decode())
            return len(theirs.assignment())

        try:
            async with consumer_of(cluster, topic) as ours:
                await ours.subscribe([topic])
                theirs.subscribe([topic])
                shared = False
                async with asyncio.timeout(PATIENCE_S):
                    while not shared:
                        await ours.poll(50)
                        count = await asyncio.to_thread(poll_theirs)
                        shared = (len(ours.assignment), count) == (2, 2)
                for partition in range(4):
                    await produce(cluster, topic, str(partition), partition=partition)
                mine = values(await read(ours, 2))
                async with asyncio.timeout(PATIENCE_S):
                    while len(seen) < 2:
                        await asyncio.to_thread(poll_theirs)
                assert sorted(mine + seen) == ["0", "1", "2", "3"]
        finally:
            await asyncio.to_thread(theirs.close)

    on(broker, use)


@pytest.mark.java
@pytest.mark.long
def test_javas_consumer_shares_the_group(java: None, broker: str, topic: str) -> None:
    """With its default assignors, range and cooperative-sticky."""

    async def use(cluster: Cluster) -> None:
        await made(cluster, topic, partitions=4)
        async with consumer_of(cluster, topic) as ours:
            await ours.subscribe([topic])
            await until(lambda: len(ours.assignment) == 4, ours)
            arguments = ["--bootstrap-server", broker, "--topic", topic, "--group", topic]
            arguments += ["--from-beginning", "--max-messages", "2"]
            theirs = asyncio.create_task(asyncio.to_thread(apache.tool, CONSOLE_CONSUMER, *arguments))
            await until(lambda: len(ours.assignment) == 2, ours)
            for partition in range(4):
                await produce(cluster, topic, str(partition), partition=partition)
            mine = values(await read(ours, 2))
            done = await theirs
            assert sorted(mine + done.stdout.split()) == ["0", "1", "2", "3"], done.stderr

    on(broker, use)


def test_a_group_that_cannot_be_joined_says_why(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        await made(cluster, topic)
        member = GroupSettings(topic, session_timeout_ms=10)  # less than any broker allows
        consumer = GroupConsumer(cluster, GroupConsumerSettings(member))
        await consumer.subscribe([topic])
        with pytest.raises(KafkaError) as caught:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await consumer.poll(500)
        assert caught.value.code == ErrorCode.INVALID_SESSION_TIMEOUT
        await consumer.close()

    on(broker, use)

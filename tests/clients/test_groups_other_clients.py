"""Groups with kafka-python, aiokafka and the Java client."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PyPartition
from kafka.structs import OffsetAndMetadata

from barnabas.testing import apache
from barnabas.testing.waiting import wait_until

from .conftest import NewTopicName, Served
from .librdkafka import produce

TIMEOUT_S = 40.0
PROGRAM = Path(__file__).with_name("JavaGroups.java")


class PythonMember(threading.Thread):
    """A consumer of kafka-python that polls in a thread of its own, as in an application. Two that take turns
    in one thread may join again and again: each is away when the other has joined."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        super().__init__(daemon=True)
        self.consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
            metadata_max_age_ms=1_000,
        )
        # Version 3.0.12 may join before it knows the topic's partitions, and joins again when it does; where
        # that takes longer than the poll that began it, the next poll forgets that it has joined.
        assert self.consumer.partitions_for_topic(topic)
        self.consumer.subscribe([topic])
        self.read: list[tuple[int, int]] = []
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopping.is_set():
            for records in self.consumer.poll(timeout_ms=1_000).values():
                self.read.extend((record.partition, record.offset) for record in records)

    def stop_polling(self) -> KafkaConsumer:
        """It is a member for as long as its session lasts."""
        self._stopping.set()
        self.join(TIMEOUT_S)
        return self.consumer


def test_kafka_python_shares_commits_and_goes_on(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str]
) -> None:
    topic, group = new_topic(partitions=4), fresh_name()
    produce(broker.bootstrap, topic, [{"value": b"%d" % n, "partition": n % 4} for n in range(40)])
    members = [PythonMember(broker.bootstrap, topic, group)]

    def sizes() -> list[int]:
        return sorted(len(each.consumer.assignment()) for each in members)

    try:
        wait_until(lambda: len(members[0].read) >= 40, TIMEOUT_S, lambda: f"all is read: {members[0].read}")
        members.append(PythonMember(broker.bootstrap, topic, group))
        wait_until(lambda: sizes() == [2, 2], TIMEOUT_S, lambda: f"partitions are shared: {sizes()}")
        consumers = [each.stop_polling() for each in members]
        for each in consumers:
            places = {place: OffsetAndMetadata(7, "seven", -1) for place in each.assignment()}
            each.commit(places)
        assert consumers[0].committed(PyPartition(topic, 3)) == 7
    finally:
        for member in members:
            member.stop_polling().close()

    last = PythonMember(broker.bootstrap, topic, group)
    try:
        wait_until(lambda: len(last.read) >= 12, TIMEOUT_S, lambda: f"the rest is read: {last.read}")
        assert sorted(last.read) == [(p, n) for p in range(4) for n in range(7, 10)]
    finally:
        last.stop_polling().close()


def test_aiokafka_shares_commits_and_goes_on(
    broker: Served, new_topic: NewTopicName, fresh_name: Callable[[], str]
) -> None:
    topic, group = new_topic(partitions=4), fresh_name()
    produce(broker.bootstrap, topic, [{"value": b"%d" % n, "partition": n % 4} for n in range(40)])

    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
        )

    async def poll_until(
        members: list[AIOKafkaConsumer], read: list[tuple[int, int]], condition: Callable[[], bool]
    ) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, [each.assignment() for each in members]
            for each in members:
                for records in (await each.getmany(timeout_ms=50)).values():
                    read.extend((record.partition, record.offset) for record in records)

    async def run() -> None:
        read: list[tuple[int, int]] = []
        members = [member()]
        await members[0].start()
        try:
            await poll_until(members, read, lambda: len(read) == 40)
            members.append(member())
            await members[1].start()
            await poll_until(
                members, read, lambda: sorted(len(each.assignment()) for each in members) == [2, 2]
            )
            for each in members:
                await each.commit(dict.fromkeys(each.assignment(), (7, "seven")))
            assert await members[0].committed(AioPartition(topic, 3)) == 7
        finally:
            for each in members:
                await each.stop()

        again, rest = member(), []
        await again.start()
        try:
            await poll_until([again], rest, lambda: len(rest) == 12)
            assert sorted(rest) == [(p, n) for p in range(4) for n in range(7, 10)]
        finally:
            await again.stop()

    asyncio.run(run())


@pytest.mark.java
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java_consumers_share_commit_and_go_on(
    java: None, broker: Served, fresh_name: Callable[[], str], protocol: str
) -> None:
    done = apache.java_program(PROGRAM, broker.bootstrap, fresh_name(), protocol, timeout=110)

    steps = ["one has all", "five each", "committed", "described", "went on", "deleted", "ok"]
    assert done.stdout.split("\n")[:-1] == steps, done.stderr
    assert done.returncode == 0

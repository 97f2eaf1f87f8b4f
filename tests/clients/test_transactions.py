"""Transactions with real clients: the committed is read once, the aborted never, who is late is fenced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.testing import apache

from .conftest import NewTopicName, Served

TIMEOUT_S = 30.0
PROGRAM = Path(__file__).with_name("JavaTransactions.java")
STEPS = [
    "committed and aborted",
    "moved",
    "open",
    "fenced",
    "terminated",
    "ok",
]


def transactional(broker: Served, transactional_id: str, **settings: object) -> Producer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, "linger.ms": 0, **named}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def read(
    broker: Served, topic: str, *, isolation: str = "read_committed", partitions: int = 1
) -> list[bytes]:
    """Everything up to the ends of the partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values, ended = [], 0
    try:
        while ended < partitions:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"only {len(values)} records came"
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    finally:
        consumer.close()
    return values


def test_a_reader_of_committed_records_sees_whole_transactions(
    broker: Served, new_topic: NewTopicName
) -> None:
    topic = new_topic(partitions=3)
    producer = transactional(broker, topic)
    kept = []
    for number in range(30):
        producer.begin_transaction()
        for index in range(3):
            producer.produce(topic, b"%d/%d" % (number, index), partition=index)
        if number % 3 == 1:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
            kept += [b"%d/%d" % (number, index) for index in range(3)]

    assert sorted(read(broker, topic, partitions=3)) == sorted(kept)
    assert len(read(broker, topic, isolation="read_uncommitted", partitions=3)) == 90


def test_records_and_offsets_move_together(broker: Served, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filler = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(20):
        filler.produce(source, b"%d" % number)
    assert filler.flush(TIMEOUT_S) == 0
    producer = transactional(broker, target)
    for is_commit in (True, False, True, False, False, True, True):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": source,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([source])
        try:
            producer.begin_transaction()
            for _ in range(5):
                message = consumer.poll(TIMEOUT_S)
                assert message is not None and message.error() is None
                producer.produce(target, message.value())
            places = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), TIMEOUT_S)
            if is_commit:
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)  # the same records come again
        finally:
            consumer.close()

    assert read(broker, target) == [b"%d" % number for number in range(20)]


def test_a_second_producer_fences_the_first(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    first = transactional(broker, topic)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(TIMEOUT_S)
    second = transactional(broker, topic)
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(TIMEOUT_S)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(TIMEOUT_S)

    assert refused.value.args[0].fatal()
    assert read(broker, topic) == [b"second"]


def test_many_producers_at_once(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=2)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            producer = transactional(broker, f"{topic}-{number}")
            for turn in range(10):
                producer.begin_transaction()
                producer.produce(topic, b"%d/%d" % (number, turn))
                if turn % 2:
                    producer.flush(TIMEOUT_S)
                    producer.abort_transaction(TIMEOUT_S)
                else:
                    producer.commit_transaction(TIMEOUT_S)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert not failures
    wanted = {b"%d/%d" % (number, turn) for number in range(8) for turn in range(0, 10, 2)}
    found = read(broker, topic, partitions=2)
    assert len(found) == len(wanted) and set(found) == wanted


def test_aiokafka_commits_aborts_and_moves(broker: Served, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()

    async def work() -> None:
        # A fenced producer leaves futures behind that nobody asks.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        plain = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        await plain.start()
        for number in range(6):
            await plain.send_and_wait(source, b"%d" % number)
        await plain.stop()
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=target)
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=broker.bootstrap,
            group_id=source,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await producer.start()
        await consumer.start()
        try:
            for turn in range(3):
                async with producer.transaction():
                    for _ in range(2):
                        message = await consumer.getone()
                        await producer.send(target, message.value)
                    where = AioTopicPartition(source, 0)
                    await producer.send_offsets_to_transaction({where: (turn + 1) * 2}, source)
                with pytest.raises(ZeroDivisionError):
                    async with producer.transaction():
                        await producer.send_and_wait(target, b"aborted")
                        raise ZeroDivisionError
            assert await consumer.committed(AioTopicPartition(source, 0)) == 6
            late = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=target)
            await late.start()
            with pytest.raises(ProducerFenced):
                async with producer.transaction():
                    await producer.send_and_wait(target, b"fenced")
            await late.stop()
        finally:
            await consumer.stop()
            await producer.stop()

    asyncio.run(asyncio.wait_for(work(), 60))
    assert read(broker, target) == [b"%d" % number for number in range(6)]


@pytest.mark.java
def test_a_java_program_uses_transactions(java: None, broker: Served, fresh_name: Callable[[], str]) -> None:
    done = apache.java_program(PROGRAM, broker.bootstrap, fresh_name(), timeout=100)

    assert done.stdout.split("\n")[:-1] == STEPS, done.stderr
    assert done.returncode == 0

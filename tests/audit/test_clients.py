"""Clients of three libraries, and our own, count what was acknowledged and what was consumed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.serialization import StringSerializer

from audit.counted import T0, WIDTH, counts, ledger_of
from barnabas.audit import PRODUCER, AuditCounter, AuditSettings, consumer
from barnabas.audit.clients import aiokafka, confluent, kafka_python
from barnabas.audit.clients.interceptors import AuditConsumer, AuditProducer
from barnabas.audit.core.buckets import NO_TIME
from barnabas.audit.core.contents import content_of
from barnabas.audit.core.messages import Tally
from barnabas.cli.main import main
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.consumers.group_consumer import GroupConsumer, GroupConsumerSettings, OffsetReset
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.groups.membership import GroupSettings
from barnabas.client.producer import Producer
from barnabas.testing.waiting import wait_until

TIMES = [T0, T0 + 1, T0 + WIDTH, T0 + WIDTH + 5, T0 + WIDTH + 6]
EXPECTED = {T0: 2, T0 + WIDTH: 3}


def create(bootstrap: str, topic: str, partitions: int = 2, **configs: str) -> None:
    made = NewTopic(topic, partitions, 1, config={k.replace("_", "."): v for k, v in configs.items()})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([made])[topic].result(30)


def counter(bootstrap: str, tier: str) -> AuditCounter:
    return AuditCounter(AuditSettings(bootstrap, window_ms=50, host="here"), tier)


def check(bootstrap: str, topic: str, group: str | None = None) -> None:
    assert counts(bootstrap, topic, PRODUCER) == EXPECTED
    assert ledger_of(bootstrap).columns[topic, T0][PRODUCER].by_partition() is not None
    if group is not None:
        assert counts(bootstrap, topic, consumer(group)) == EXPECTED


def test_confluent_kafka_counts_deliveries_and_consumed_messages(broker: str, topic: str) -> None:
    create(broker, topic)
    called: list[Any] = []
    note: Callable[[Any, Any], None] = lambda error, message: called.append(error)  # noqa: E731
    with counter(broker, PRODUCER) as audit:
        config = {"bootstrap.servers": broker, "on_delivery": note}
        producer = confluent.Producer(config, audit=audit)
        producer.produce(topic, b"v", timestamp=TIMES[0])
        producer.produce(topic, b"v", b"k", -1, note, None, TIMES[1])
        producer.produce(topic, value=b"v", on_delivery=note, timestamp=TIMES[2])
        producer.produce(topic, value=b"v", callback=note, timestamp=TIMES[3])
        producer.produce(topic, "v", timestamp=TIMES[4])
        assert producer.flush(30) == 0
    assert called == [None] * 5
    group = f"{topic}-group"
    reader = confluent.Consumer(
        {"bootstrap.servers": broker, "group.id": group, "auto.offset.reset": "earliest"},
        audit=counter(broker, consumer(group)),
    )
    reader.subscribe([topic])
    seen = 0
    while seen < 2:
        message = reader.poll(1)
        seen += message is not None and message.error() is None
    while seen < 5:
        seen += len(reader.consume(5, timeout=1))
    reader.close()
    check(broker, topic, group)


def test_confluent_kafkas_serializers_can_be_mixed_in(broker: str, topic: str) -> None:
    create(broker, topic)
    with counter(broker, PRODUCER) as audit:
        config = {"bootstrap.servers": broker, "value.serializer": StringSerializer()}
        producer = confluent.SerializingProducer(config, audit=audit)
        for number, timestamp in enumerate(TIMES):
            producer.produce(topic, str(number).encode(), "value", timestamp=timestamp)
        assert producer.flush(30) == 0
    check(broker, topic)


def test_a_transaction_of_confluent_kafka_counts_when_it_is_committed(broker: str, topic: str) -> None:
    create(broker, topic)
    with counter(broker, PRODUCER) as audit:
        config = {"bootstrap.servers": broker, "transactional.id": topic}
        producer = confluent.Producer(config, audit=audit)
        producer.init_transactions(30)
        for is_commit in (True, False):
            producer.begin_transaction()
            for timestamp in TIMES:
                producer.produce(topic, b"v", timestamp=timestamp)
            producer.flush(30)
            assert audit.flush()
            assert counts(broker, topic, PRODUCER) == ({} if is_commit else EXPECTED)
            if is_commit:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
            assert audit.flush()
    check(broker, topic)
    assert counts(broker, topic, PRODUCER, "aborted") == EXPECTED


def test_a_message_that_cannot_be_delivered_counts_as_failed(broker: str, topic: str) -> None:
    create(broker, topic, max_message_bytes="1000")
    with counter(broker, PRODUCER) as audit:
        producer = confluent.Producer({"bootstrap.servers": broker}, audit=audit)
        producer.produce(topic, b"v" * 5_000, timestamp=T0)
        assert producer.flush(30) == 0
    assert counts(broker, topic, PRODUCER) == {}
    assert counts(broker, topic, PRODUCER, "failed") == {NO_TIME: 1}  # librdkafka's report has no time


def test_a_batch_of_confluent_kafka_is_counted(broker: str, topic: str) -> None:
    create(broker, topic)
    called: list[Any] = []
    with counter(broker, PRODUCER) as audit:
        producer = confluent.Producer({"bootstrap.servers": broker}, audit=audit)
        messages = [
            {"value": b"v", "callback": lambda error, message: called.append(error)} for _ in range(3)
        ]
        assert producer.produce_batch(topic, messages) == 3
        assert producer.flush(30) == 0
    assert called == [None] * 3
    assert sum(counts(broker, topic, PRODUCER).values()) == 3


def test_kafka_python_counts_acknowledged_and_consumed_records(broker: str, topic: str) -> None:
    create(broker, topic)
    producer = kafka_python.KafkaProducer(bootstrap_servers=broker, audit=counter(broker, PRODUCER))
    for timestamp in TIMES:
        producer.send(topic, b"v", timestamp_ms=timestamp)
    producer.flush()
    producer.close()
    group = f"{topic}-group"
    reader = kafka_python.KafkaConsumer(
        topic,
        bootstrap_servers=broker,
        group_id=group,
        auto_offset_reset="earliest",
        audit=counter(broker, consumer(group)),
    )
    first = [next(reader), next(reader)]
    assert {each.timestamp for each in first} <= set(TIMES)
    next(reader), next(reader), next(reader)
    reader.close()
    check(broker, topic, group)


def test_kafka_python_counts_polled_records(broker: str, topic: str) -> None:
    create(broker, topic)
    producer = kafka_python.KafkaProducer(bootstrap_servers=broker, audit=counter(broker, PRODUCER))
    for timestamp in TIMES:
        producer.send(topic, b"v", timestamp_ms=timestamp)
    producer.flush()
    producer.close()
    reader = kafka_python.KafkaConsumer(
        bootstrap_servers=broker, audit=counter(broker, consumer("polls")), auto_offset_reset="earliest"
    )
    reader.subscribe([topic])
    seen = 0
    while seen < 5:
        seen += sum(map(len, reader.poll(1000).values()))
    reader.close()
    check(broker, topic, "polls")


def test_aiokafka_counts_acknowledged_and_consumed_records(broker: str, topic: str) -> None:
    create(broker, topic)
    group = f"{topic}-group"

    async def work() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker, audit=counter(broker, PRODUCER))
        await producer.start()
        for timestamp in TIMES[:3]:
            await producer.send_and_wait(topic, b"v", timestamp_ms=timestamp)
        batch = producer.create_batch()
        for timestamp in TIMES[3:]:
            assert batch.append(key=None, value=b"v", timestamp=timestamp) is not None
        await (await producer.send_batch(batch, topic, partition=1))
        await producer.stop()
        reader = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker,
            group_id=group,
            auto_offset_reset="earliest",
            audit=counter(broker, consumer(group)),
        )
        await reader.start()
        await reader.getone()
        seen = 1
        async for _ in reader:
            seen += 1
            if seen == 3:
                break
        while seen < 5:
            seen += sum(map(len, (await reader.getmany(timeout_ms=1000)).values()))
        await reader.stop()

    asyncio.run(work())
    check(broker, topic, group)


def test_aiokafka_without_acknowledgements_counts_records_at_their_times(broker: str, topic: str) -> None:
    """Nothing comes back from the broker: what the client sent is all that is known."""
    create(broker, topic)
    audit = counter(broker, PRODUCER)
    sent: list[float] = []

    async def work() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker, acks=0, audit=audit)
        await producer.start()
        for timestamp in TIMES[:3]:
            await producer.send_and_wait(topic, b"v", None, 0, timestamp)
        batch = producer.create_batch()
        for timestamp in TIMES[3:]:
            assert batch.append(key=None, value=b"v", timestamp=timestamp) is not None
        future = await producer.send_batch(batch, topic, partition=1)
        sent.append(time.time() * 1000)
        await producer.send_and_wait(topic, b"v", partition=0)
        sent.append(time.time() * 1000)
        await producer.flush()
        assert future.done()
        await producer.stop()

    asyncio.run(work())
    found = counts(broker, topic, PRODUCER)
    (bucket,) = set(found) - set(EXPECTED)
    assert bucket in {int(each - each % WIDTH) for each in sent}
    assert found == {**EXPECTED, bucket: 1}
    assert ledger_of(broker).columns[topic, T0][PRODUCER].by_partition() == {0: Tally(2)}


def test_interceptors_of_our_own_client_count(broker: str, topic: str) -> None:
    create(broker, topic)
    group = f"{topic}-group"

    async def work() -> None:
        producing, consuming = counter(broker, PRODUCER), counter(broker, consumer(group))
        plain = counter(broker, consumer("plain"))
        async with Cluster(parse_bootstrap(broker)) as cluster:
            async with Producer(cluster, interceptors=[AuditProducer(producing)]) as producer:
                for timestamp in TIMES:
                    await producer.send(topic, b"v", timestamp_ms=timestamp)
            settings = GroupConsumerSettings(GroupSettings(group), reset=OffsetReset.EARLIEST)
            member = GroupConsumer(cluster, settings, interceptors=[AuditConsumer(consuming)])
            await member.subscribe([topic])
            seen = 0
            while seen < 5:
                seen += len(await member.poll(1000))
            await member.close()
            reader = Consumer(cluster, interceptors=[AuditConsumer(plain)])
            await reader.assign_at([TopicPartition(topic, each) for each in range(2)], OffsetSpec.EARLIEST)
            seen = 0
            while seen < 5:
                seen += len(await reader.poll(1000))
            await reader.close()
        for each in (producing, consuming, plain):
            assert await asyncio.to_thread(each.close)

    asyncio.run(work())
    check(broker, topic, group)
    assert counts(broker, topic, consumer("plain")) == EXPECTED


@pytest.mark.parametrize("library", ["confluent", "kafka-python", "aiokafka"])
def test_contents_are_summed_by_clients_as_the_log_has_them(broker: str, topic: str, library: str) -> None:
    """The cluster is counted from outside, with the sums of what its batches hold."""
    create(broker, topic, 1)
    settings = AuditSettings(broker, sums=True)
    records = [(None, b"a"), (b"k", None), (b"k", b"\xff"), (b"", b""), (b"k", b"b" * 50)]
    with AuditCounter(settings, PRODUCER) as audit, AuditCounter(settings, consumer("g")) as read:
        if library == "confluent":
            producer = confluent.Producer({"bootstrap.servers": broker}, audit=audit)
            for key, value in records:
                producer.produce(topic, value, key, timestamp=T0)
            producer.flush(30)
            reader = confluent.Consumer(
                {"bootstrap.servers": broker, "group.id": "g", "auto.offset.reset": "earliest"}, audit=read
            )
            reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
            seen = 0
            while seen < len(records):
                seen += len(reader.consume(10, 1))
            reader.close()
        elif library == "kafka-python":
            sender = kafka_python.KafkaProducer(bootstrap_servers=broker, audit=audit)
            for key, value in records:
                sender.send(topic, value, key, timestamp_ms=T0)
            sender.close()
            python = kafka_python.KafkaConsumer(bootstrap_servers=broker, group_id=None, audit=read)
            python.assign([place := kafka_python.kafka.TopicPartition(topic, 0)])
            python.seek_to_beginning(place)
            seen = 0
            while seen < len(records):
                seen += sum(map(len, python.poll(1_000).values()))
            python.close()
        else:

            async def run() -> None:
                sender = aiokafka.AIOKafkaProducer(bootstrap_servers=broker, audit=audit)
                await sender.start()
                for key, value in records:
                    await sender.send_and_wait(topic, value, key, timestamp_ms=T0)
                await sender.stop()
                own = aiokafka.AIOKafkaConsumer(
                    topic, bootstrap_servers=broker, audit=read, auto_offset_reset="earliest"
                )
                await own.start()
                for _ in records:
                    await own.getone()
                await own.stop()

            asyncio.run(run())
    assert (
        main(
            ["audit", "count", "--once", "--bootstrap-server", broker, "--topic", topic, "--read", "contents"]
        )
        == 0
    )
    column = ledger_of(broker).columns[topic, T0]
    expected = sum(content_of(key, value, T0) for key, value in records) % 2**64
    found = {tier: (cell.total.summed, cell.total.content) for tier, cell in column.items()}
    assert found == dict.fromkeys((PRODUCER, "cluster", consumer("g")), (5, expected))


def test_counts_are_stored_soon_after_a_flush_and_a_commit(broker: str, topic: str) -> None:
    """The counters are never closed, as if their process was killed."""
    create(broker, topic, 1)
    audit, read = counter_of_an_hour(broker, PRODUCER), counter_of_an_hour(broker, consumer("g"))
    producer = confluent.Producer({"bootstrap.servers": broker}, audit=audit)
    reader = confluent.Consumer(
        {"bootstrap.servers": broker, "group.id": topic, "enable.auto.commit": False}, audit=read
    )
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    for number in range(1, 4):
        producer.produce(topic, b"v", timestamp=T0)
        producer.flush(30)
        wait_until(lambda number=number: counts(broker, topic, PRODUCER) == {T0: number}, 20)  # type: ignore[misc]
        message = reader.poll(20)
        assert message is not None
        reader.commit(message, asynchronous=False)
        wait_until(lambda number=number: counts(broker, topic, consumer("g")) == {T0: number}, 20)  # type: ignore[misc]
    producer.audit.close()
    reader.close()


def counter_of_an_hour(bootstrap: str, tier: str) -> AuditCounter:
    return AuditCounter(AuditSettings(bootstrap, window_ms=3_600_000), tier)


def test_an_interceptor_that_fails_does_not_disturb_the_client(broker: str, topic: str) -> None:
    create(broker, topic)

    class Broken:
        def on_acknowledgement(self, batch: object, error: object) -> None:
            raise RuntimeError("broken")

    async def work() -> int:
        async with (
            Cluster(parse_bootstrap(broker)) as cluster,
            Producer(cluster, interceptors=[Broken()]) as producer,
        ):
            return (await (await producer.send(topic, b"v", partition=0))).offset

    assert asyncio.run(work()) == 0


@pytest.mark.parametrize("library", ["confluent", "kafka-python", "aiokafka", "own"])
def test_append_time_is_the_time_that_producers_count(broker: str, topic: str, library: str) -> None:
    """The broker gives records of such a topic their time, and tells it in the acknowledgement."""
    create(broker, topic, message_timestamp_type="LogAppendTime")
    audit = counter(broker, PRODUCER)

    async def own() -> None:
        async with (
            Cluster(parse_bootstrap(broker)) as cluster,
            Producer(cluster, interceptors=[AuditProducer(audit)]) as producer,
        ):
            await producer.send(topic, b"v", timestamp_ms=T0)

    async def aio() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker, audit=audit)
        await producer.start()
        await producer.send_and_wait(topic, b"v", timestamp_ms=T0)
        await producer.stop()

    if library == "confluent":
        producer = confluent.Producer({"bootstrap.servers": broker}, audit=audit)
        producer.produce(topic, b"v", timestamp=T0)
        assert producer.flush(30) == 0
    elif library == "kafka-python":
        other = kafka_python.KafkaProducer(bootstrap_servers=broker, audit=audit)
        other.send(topic, b"v", timestamp_ms=T0)
        other.flush()
        other.close()
    else:
        asyncio.run(own() if library == "own" else aio())
    assert audit.close()
    seen = confluent_kafka.Consumer(
        {"bootstrap.servers": broker, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    seen.subscribe([topic])
    message = None
    while message is None:
        message = seen.poll(1)
    seen.close()
    stamp = message.timestamp()[1]
    assert stamp > T0 + WIDTH
    assert counts(broker, topic, PRODUCER) == {stamp - stamp % WIDTH: 1}


def test_the_rest_proxy_counts_what_it_produces(broker: str, topic: str) -> None:
    from barnabas.rest.application.from_settings import kafka_settings
    from barnabas.rest.kafka import Kafka
    from barnabas.services.settings.loading import load_settings

    create(broker, topic)
    given = {"bootstrap.servers": broker, "barnabas.audit.enable": "true"}
    settings = kafka_settings(load_settings("rest", overrides=given))
    (interceptor,) = settings.interceptors
    assert isinstance(interceptor, AuditProducer) and interceptor.audit.settings.application

    async def work() -> None:
        kafka = Kafka(settings)
        for timestamp in TIMES:
            await (await kafka.producer.send(topic, b"v", timestamp_ms=timestamp))
        await kafka.close()

    asyncio.run(work())
    assert interceptor.audit.close()
    check(broker, topic)
    assert not kafka_settings(load_settings("rest", overrides={"bootstrap.servers": broker})).interceptors

"""kill -9 under load, again and again: nothing acknowledged is lost, offsets are dense, order is kept."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from barnabas.testing import Broker

from .progress import kill_and_start, wait_for
from .writers import RawWriter, stored

# Small segments, so that kills also hit rolling, indexes and snapshots.
SETTINGS = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "512", "log.retention.ms": "-1"}

pytestmark = pytest.mark.timeout(900)


def check(writer: RawWriter, records: list[tuple[int, int]]) -> None:
    """The promises, one partition."""
    assert not writer.errors
    assert [offset for offset, _ in records] == list(range(len(records))), "offsets are not dense"
    numbers = [number for _, number in records]
    assert numbers == sorted(set(numbers)), "records are out of order or twice"
    at = dict(records)
    lost = {offset: number for offset, number in writer.acknowledged.items() if at.get(offset) != number}
    assert not lost, f"{len(lost)} acknowledged records are not at their offsets"
    strangers = set(numbers) - set(writer.acknowledged.values()) - writer.uncertain
    assert not strangers, "records are there that nobody sent"


def test_acknowledged_records_survive(broker: Broker, kills: int) -> None:
    partitions = 4
    broker.create_topic("load", partitions)
    writers = [RawWriter(broker.port, "load", n, acks=1 if n % 2 else -1) for n in range(partitions)]
    for writer in writers:
        writer.start()
    rng = random.Random(kills)

    for _ in range(kills):
        for writer in writers:
            wait_for(lambda writer=writer: len(writer.acknowledged), rng.randrange(50, 300))
        kill_and_start(broker)
    for writer in writers:
        wait_for(lambda writer=writer: len(writer.acknowledged), 20)
        writer.stop()

    for writer in writers:
        check(writer, stored(broker.port, "load", writer.partition))


def test_an_idempotent_producer_writes_everything_once_and_in_order(broker: Broker, kills: int) -> None:
    broker.create_topic("once", 2)
    delivered: list[int] = []
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is None:
            delivered.append(message.offset())
        else:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": 300_000,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "linger.ms": 1,
            "batch.num.messages": 50,
            "queue.buffering.max.messages": 5_000,
        }
    )
    stopping = threading.Event()
    sent = 0

    def produce() -> None:
        nonlocal sent
        while not stopping.is_set():
            try:
                producer.produce("once", b"%d" % sent, partition=sent % 2, on_delivery=on_delivery)
                sent += 1
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)

    writing = threading.Thread(target=produce, daemon=True)
    writing.start()
    for _ in range(kills):
        wait_for(lambda: len(delivered), 3_000)
        kill_and_start(broker)
    stopping.set()
    writing.join()
    assert producer.flush(120) == 0

    assert not failed
    assert len(delivered) == sent
    for partition in range(2):
        records = stored(broker.port, "once", partition)
        assert [offset for offset, _ in records] == list(range(len(records)))
        assert [number for _, number in records] == list(range(partition, sent, 2))


def test_topics_and_settings_that_were_acknowledged_are_there(broker: Broker, kills: int) -> None:
    made: list[str] = []
    stopping = threading.Event()

    def create() -> None:
        number = 0
        while not stopping.is_set():
            admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
            for _ in range(50):
                name, number = f"topic-{number}", number + 1
                try:
                    admin.create_topics([NewTopic(name, 2, 1)], operation_timeout=5)[name].result(10)
                except Exception:
                    break  # it may or may not be there: nobody said so
                made.append(name)

    creating = threading.Thread(target=create, daemon=True)
    creating.start()
    for _ in range(kills):
        wait_for(lambda: len(made), 10)
        kill_and_start(broker)
    stopping.set()
    creating.join()

    known = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30).topics
    assert [name for name in made if name not in known or len(known[name].partitions) != 2] == []


@pytest.mark.parametrize(
    "damage",
    [
        "half a batch",
        pytest.param("garbage", marks=pytest.mark.long),
        pytest.param("zeros", marks=pytest.mark.long),
        pytest.param("indexes gone", marks=pytest.mark.long),
        pytest.param("snapshots gone", marks=pytest.mark.long),
    ],
)
def test_a_damaged_tail_is_cut_and_the_rest_is_kept(broker: Broker, damage: str) -> None:
    broker.create_topic("torn")
    writer = RawWriter(broker.port, "torn", 0, acks=-1)
    writer.start()
    wait_for(lambda: len(writer.acknowledged), 500)
    broker.kill()

    folder = broker.data / "torn-0"
    log = sorted(folder.glob("*.log"))[-1]
    if damage == "half a batch":
        whole = log.read_bytes()
        log.write_bytes(whole + whole[:75])
    elif damage == "garbage":
        with log.open("ab") as file:
            file.write(random.Random(1).randbytes(300))
    elif damage == "zeros":
        with log.open("ab") as file:
            file.write(bytes(5_000))
    else:
        suffixes = (".index", ".timeindex") if damage == "indexes gone" else (".snapshot",)
        for file_path in folder.iterdir():
            if file_path.suffix in suffixes:
                file_path.unlink()

    broker.start()
    wait_for(lambda: len(writer.acknowledged), 50)
    writer.stop()
    check(writer, stored(broker.port, "torn", 0))


def test_a_broker_killed_while_it_recovers_recovers_later(broker: Broker, kills: int) -> None:
    broker.create_topic("load", 3)
    writers = [RawWriter(broker.port, "load", n, acks=-1) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        wait_for(lambda writer=writer: len(writer.acknowledged), 1_000)
    broker.kill()

    overrides = [
        part for name, value in broker.properties.items() for part in ("--override", f"{name}={value}")
    ]
    for number in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-m", "barnabas", "start", *overrides],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):  # killed at another moment each time
            child.wait(0.05 + 0.3 * number / kills)
        child.kill()
        child.wait()

    broker.start()
    for writer in writers:
        wait_for(lambda writer=writer: len(writer.acknowledged), 20)
        writer.stop()
        check(writer, stored(broker.port, "load", writer.partition))


def test_deleted_topics_stay_deleted_and_new_partitions_stay(broker: Broker, kills: int) -> None:
    admin_settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    for round_number in range(kills):
        kept, gone = f"kept-{round_number}", f"gone-{round_number}"
        broker.create_topic(kept, 1, {"retention.ms": "123456"})
        broker.create_topic(gone, 3)
        admin = AdminClient(admin_settings)
        admin.create_partitions([NewPartitions(kept, 4)])[kept].result(30)
        broker.delete_topic(gone)
        kill_and_start(broker)

    admin = AdminClient(admin_settings)
    topics = admin.list_topics(timeout=30).topics
    assert sorted(topics) == sorted(f"kept-{n}" for n in range(kills))
    assert {len(topic.partitions) for topic in topics.values()} == {4}
    resource = ConfigResource(ResourceType.TOPIC, "kept-0")
    settings = admin.describe_configs([resource])[resource].result(30)
    assert settings["retention.ms"].value == "123456"
    left = [folder.name for folder in broker.data.iterdir() if folder.name.startswith("gone-")]
    assert all(name.endswith("-delete") for name in left), "folders of deleted topics came back"

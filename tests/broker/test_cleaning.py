"""The log cleaner in a broker: it cleans coordinators' topics, restarts workers, and marks damaged logs."""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas.records.batch import headers
from barnabas.records.record import read_records
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from broker import conversation
from broker.conversation import Conversation
from poisoned_batches import UNCOMPRESSED

MEGABYTE = 1 << 20
EAGER = {"log.cleaner.backoff.ms": 100, "log.cleaner.min.cleanable.ratio": 0.01}
ONE_PARTITION = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
COMPACTED = {"cleanup.policy": "compact", "segment.ms": 1000, "min.cleanable.dirty.ratio": 0.01}
LONG_AGO_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def files(broker: Broker, folder: str, suffix: str = ".log") -> dict[str, int]:
    """Names and sizes of files; empty while files are being renamed."""
    found = {}
    for path in sorted((broker.data / folder).glob(f"*{suffix}")):
        try:
            found[path.name] = path.stat().st_size
        except FileNotFoundError:
            return {}
    return found


def produce(broker: Broker, topic: str, *pairs: tuple[str, str | None], at_ms: int = LONG_AGO_MS) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for key, value in pairs:
        producer.produce(topic, value, key, 0, timestamp=at_ms)
    assert producer.flush(30) == 0


def dirty(broker: Broker, topic: str, values: int = 100) -> int:
    """Create a topic with a closed segment of one key. Out: its size."""
    broker.create_topic(topic, configs=COMPACTED)
    produce(broker, topic, *((("key", f"{n} " * 20)) for n in range(values)))
    size = files(broker, f"{topic}-0")["00000000000000000000.log"]
    produce(broker, topic, ("other", "1"), at_ms=LONG_AGO_MS + HOUR_MS)
    return size


def is_cleaned(broker: Broker, topic: str, size: int) -> bool:
    return 0 < files(broker, f"{topic}-0").get("00000000000000000000.log", 0) < size


def set_topic(broker: Broker, topic: str, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(10)


def group(broker: Broker, name: str) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "log_level": 0})


# Coordinators


def test_a_cleaned_offsets_topic_has_the_same_offsets_after_a_restart(tmp_path: Path) -> None:
    settings = {**EAGER, **ONE_PARTITION, "offsets.topic.segment.bytes": MEGABYTE}
    note = "n" * 4000
    with Broker(tmp_path / "data", overrides=settings) as broker:
        broker.create_topic("read", partitions=3)
        groups = {f"group-{number}": group(broker, f"group-{number}") for number in range(4)}
        for offset in range(300):
            for consumer in groups.values():
                where = TopicPartition("read", offset % 3, offset, metadata=note)
                consumer.commit(offsets=[where], asynchronous=False)
        written = 1200 * len(note)
        assert written > 4 * MEGABYTE
        wait_until(lambda: clean_to(broker) == active_base_offset(broker, "__consumer_offsets-0") > 0, 30)
        assert sum(files(broker, "__consumer_offsets-0").values()) < 2 * MEGABYTE

        broker.stop()
        closed = sorted((broker.data / "__consumer_offsets-0").glob("*.log"))[:-1]
        keys = [key for path in closed for key in keys_in(path)]
        assert len(keys) == len(set(keys)) > 0
        broker.start()

        for name, consumer in groups.items():
            consumer.close()
            found = group(broker, name).committed([TopicPartition("read", n) for n in range(3)], timeout=30)
            assert [where.offset for where in found] == [297, 298, 299]
            assert [where.metadata for where in found] == [note] * 3


def clean_to(broker: Broker) -> int:
    """The cleaner checkpoint of the only log of this broker."""
    checkpoint = broker.data / "cleaner-offset-checkpoint"
    return int(checkpoint.read_text().split()[-1]) if checkpoint.exists() else -1


def active_base_offset(broker: Broker, folder: str) -> int:
    return max((int(name.removesuffix(".log")) for name in files(broker, folder)), default=0)


def keys_in(path: Path) -> list[bytes | None]:
    content = path.read_bytes()
    return [
        record.key for position, _ in headers(content) for record in read_records(content, position=position)
    ]


def test_a_cleaned_transaction_topic_keeps_its_transactional_ids(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", overrides={**EAGER, **ONE_PARTITION}) as broker:
        broker.create_topic("written")

        def transaction(number: int) -> None:
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "transactional.id": f"id-{number % 3}",
                    "log_level": 0,
                }
            )
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce("written", f"{number}")
            producer.commit_transaction(30)

        for number in range(12):
            transaction(number)
        full = files(broker, "__transaction_state-0")["00000000000000000000.log"]
        set_topic(broker, "__transaction_state", segment_ms="100")
        wait_for_the_clock(100)
        transaction(12)
        wait_until(
            lambda: 0 < files(broker, "__transaction_state-0").get("00000000000000000000.log", 0) < full / 2,
            30,
        )

        broker.stop()
        broker.start()
        for number in range(3):
            transaction(number)


def wait_for_the_clock(duration_ms: int) -> None:
    """Wait until new records are that much younger than the last ones."""
    end = time.time() + duration_ms / 1000
    wait_until(lambda: time.time() > end)


# Workers


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "data", overrides=EAGER, in_process=False) as broker:
        yield broker


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="tells children by /proc")


@needs_proc
def test_a_broker_without_dirty_logs_has_no_worker(child: Broker) -> None:
    child.create_topic("plain")
    produce(child, "plain", ("key", "1"))
    assert children_of(child.pid) == []


@needs_proc
def test_the_worker_dies_with_a_broker_that_is_killed(child: Broker) -> None:
    size = dirty(child, "compacted")
    wait_until(lambda: is_cleaned(child, "compacted", size), 30)
    [worker] = children_of(child.pid)
    assert os.getpriority(os.PRIO_PROCESS, worker) > os.getpriority(os.PRIO_PROCESS, child.pid)
    child.kill()
    wait_until(lambda: not Path(f"/proc/{worker}").exists() or is_zombie(worker), 10)


@needs_proc
def test_a_worker_that_is_killed_is_replaced(child: Broker) -> None:
    size = dirty(child, "first")
    wait_until(lambda: is_cleaned(child, "first", size), 30)
    [worker] = children_of(child.pid)
    os.kill(worker, 9)
    size = dirty(child, "second")
    wait_until(lambda: is_cleaned(child, "second", size), 30)
    assert worker not in children_of(child.pid)


def is_zombie(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def test_a_broker_stops_during_cleaning_and_resumes_it_later(tmp_path: Path) -> None:
    slow = {**EAGER, "log.cleaner.io.max.bytes.per.second": 4000}
    with Broker(tmp_path / "data", overrides=slow) as broker:
        size = dirty(broker, "slow")
        wait_until(lambda: files(broker, "slow-0", ".cleaned"), 30)
    assert files(broker, "slow-0") and not files(broker, "slow-0", ".cleaned")
    with Broker(tmp_path / "data", overrides=EAGER) as broker:
        wait_until(lambda: is_cleaned(broker, "slow", size), 30)


def test_a_topic_is_deleted_during_cleaning_and_created_again(tmp_path: Path) -> None:
    slow = {**EAGER, "log.cleaner.io.max.bytes.per.second": 4000}
    with Broker(tmp_path / "data", overrides=slow) as broker:
        dirty(broker, "slow")
        wait_until(lambda: files(broker, "slow-0", ".cleaned"), 30)
        broker.delete_topic("slow")
        wait_until(lambda: not (broker.data / "slow-0").exists(), 30)
        small = dirty(broker, "slow", values=3)
        wait_until(lambda: is_cleaned(broker, "slow", small), 30)


def test_a_new_topic_does_not_inherit_the_checkpoint_of_a_deleted_one(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", overrides=EAGER) as broker:
        checkpoint = broker.data / "cleaner-offset-checkpoint"
        size = dirty(broker, "again")
        wait_until(lambda: is_cleaned(broker, "again", size), 30)
        wait_until(lambda: checkpoint.exists() and "again 0 100" in checkpoint.read_text(), 30)
        assert checkpoint.read_text() == "0\n1\nagain 0 100\n"
        broker.delete_topic("again")
        wait_until(lambda: checkpoint.read_text() == "0\n0\n", 30)
        size = dirty(broker, "again")
        wait_until(lambda: is_cleaned(broker, "again", size), 30)


# Uncleanable logs


def metric(port: int, name: str) -> float:
    """The sum of all samples whose name starts with the prefix."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_a_damaged_log_is_marked_and_the_others_are_cleaned(tmp_path: Path) -> None:
    [port] = free_ports(1)
    settings = {**EAGER, "barnabas.metrics.port": port}
    with Broker(tmp_path / "data", overrides={**settings, "log.cleaner.enable": False}) as broker:
        size = dirty(broker, "damaged")
        other = dirty(broker, "sound")
    with (broker.data / "damaged-0" / "00000000000000000000.log").open("r+b") as file:
        file.seek(size // 2)
        file.write(b"damage")

    with Broker(tmp_path / "data", overrides=settings) as broker:
        wait_until(lambda: is_cleaned(broker, "sound", other), 30)
        wait_until(lambda: metric(port, "kafka_log_logcleanermanager_uncleanable_partitions_count") == 1, 30)
        assert files(broker, "damaged-0")["00000000000000000000.log"] == size
        assert metric(port, "kafka_log_logcleanermanager_uncleanable_bytes") == size
        assert metric(port, "kafka_log_logcleaner_deadthreadcount") == 0
        assert not files(broker, "damaged-0", ".cleaned")


def test_malformed_records_are_logged_and_the_other_logs_are_cleaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They were produced without validation, before the topic was compacted."""
    [port] = free_ports(1)
    settings = {**EAGER, "barnabas.metrics.port": port, "barnabas.produce.validation": "none"}
    with Broker(tmp_path / "data", overrides=settings) as broker:
        broker.create_topic("poisoned", configs={"segment.ms": 1000, "retention.ms": -1})
        produce(broker, "poisoned", *((("key", f"{n} " * 20)) for n in range(100)))
        with Conversation(broker) as talk:
            for name in ("text instead of a record", "a million records declared"):
                answer = talk.ask(*conversation.produce("poisoned", UNCOMPRESSED[name]))
                assert answer.responses[0].partition_responses[0].error_code == 0
        produce(broker, "poisoned", ("other", "1"), at_ms=LONG_AGO_MS + HOUR_MS)
        before = files(broker, "poisoned-0")
        set_topic(broker, "poisoned", cleanup_policy="compact")
        wait_until(lambda: "poisoned-0 cannot be cleaned" in caplog.text, 60)
        assert "the batch of offsets 100 to 100 cannot be read" in caplog.text
        size = dirty(broker, "sound")
        wait_until(lambda: is_cleaned(broker, "sound", size), 60)
        assert metric(port, "kafka_log_logcleanermanager_uncleanable_partitions_count") == 1
        assert metric(port, "kafka_log_logcleaner_deadthreadcount") == 0
        assert caplog.text.count("poisoned-0 cannot be cleaned") == 1
        assert files(broker, "poisoned-0") == before


def test_nothing_is_cleaned_where_the_cleaner_is_off(tmp_path: Path) -> None:
    """The time of the last run shows that the cleaner never ran."""
    [port] = free_ports(1)
    settings = {**EAGER, "barnabas.metrics.port": port, "log.cleaner.enable": False}
    with Broker(tmp_path / "data", overrides=settings) as broker:
        dirty(broker, "left")
        assert metric(port, "kafka_log_logcleanermanager_time") > 1_000_000_000_000  # since 1970


def test_several_cleaners_share_the_work(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", overrides={**EAGER, "log.cleaner.threads": 2}) as broker:
        sizes = {f"topic-{number}": dirty(broker, f"topic-{number}") for number in range(4)}
        wait_until(lambda: all(is_cleaned(broker, topic, size) for topic, size in sizes.items()), 30)


def test_the_cleaner_applies_new_settings_at_once(tmp_path: Path) -> None:
    [port] = free_ports(1)
    never = {**EAGER, "log.cleaner.backoff.ms": 3_600_000, "barnabas.metrics.port": port}
    with Broker(tmp_path / "data", overrides=never) as broker:
        wait_until(lambda: metric(port, "kafka_log_logcleanermanager_time") < HOUR_MS, 30)  # it has looked
        size = dirty(broker, "waiting")
        entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(10)
        wait_until(lambda: is_cleaned(broker, "waiting", size), 30)

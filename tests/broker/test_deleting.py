"""Deletion of records in a running broker: by retention, by DeleteRecords, with their topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest
from barnabas.records.record import Record, build_batch
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch, end_offset, fetch, produce, start_offset

FAST = {
    "log.retention.check.interval.ms": 50,
    "log.segment.delete.delay.ms": 200,
    "log.retention.ms": -1,
    "log.flush.start.offset.checkpoint.interval.ms": 50,
}
DAY_MS = 24 * 3600 * 1000
Topic = DeleteRecordsRequest.DeleteRecordsTopic


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def quick(data: Path) -> Iterator[Broker]:
    """A broker that applies retention twenty times a second."""
    with Broker(data, overrides=FAST) as broker:
        yield broker


def delete(topic: str, offset: int, partition: int = 0) -> tuple[DeleteRecordsRequest, int]:
    asked = Topic.DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(topics=[Topic(name=topic, partitions=[asked])], timeout_ms=1000), 2


def result(talk: Conversation, topic: str, offset: int, partition: int = 0) -> tuple[int, str]:
    [answered] = talk.ask(*delete(topic, offset, partition)).topics
    [found] = answered.partitions
    assert (answered.name, found.partition_index) == (topic, partition)
    return found.low_watermark, ErrorCode(found.error_code).name


def aged(now_ms: int, days: float) -> bytes:
    return bytes(build_batch([Record(timestamp=now_ms - int(days * DAY_MS), value=b"x" * 100)]))


def test_segments_older_than_seven_days_are_deleted(quick: Broker, data: Path) -> None:
    now_ms = int(time.time() * 1000)
    quick.create_topic("aged", configs={"retention.ms": 7 * DAY_MS, "segment.ms": DAY_MS // 2})
    with Conversation(quick) as talk:
        for days in (12, 10, 6, 5, 2):
            talk.ask(*produce("aged", aged(now_ms, days)))

        wait_until(lambda: start_offset(talk, "aged") == 2)
        assert end_offset(talk, "aged") == 5
        assert (
            talk.ask(*fetch("aged", 1)).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        )
    wait_until(lambda: len(list((data / "aged-0").glob("*.log*"))) == 3)


def test_lower_retention_bytes_delete_the_oldest_segments(quick: Broker) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    quick.create_topic("large", configs={"segment.bytes": 1048576})
    with Conversation(quick) as talk:
        for _ in range(5):
            talk.ask(*produce("large", batch(b"x" * 600_000)))
        assert start_offset(talk, "large") == 0
        entry = ConfigEntry("retention.bytes", "1300000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "large", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": quick.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(10)

        wait_until(lambda: start_offset(talk, "large") == 2)


def test_records_before_an_offset_are_deleted(quick: Broker) -> None:
    quick.create_topic("some")
    with Conversation(quick) as talk:
        talk.ask(*produce("some", batch(*[b"%d" % n for n in range(10)])))

        assert result(talk, "some", 4) == (4, "NONE")
        assert start_offset(talk, "some") == 4
        assert result(talk, "some", 2) == (4, "NONE")
        assert result(talk, "some", 11) == (-1, "OFFSET_OUT_OF_RANGE")
        assert result(talk, "some", -2) == (-1, "OFFSET_OUT_OF_RANGE")
        assert result(talk, "some", -1) == (10, "NONE")
        assert (
            talk.ask(*fetch("some", 9)).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        )
        talk.ask(*produce("some", batch(b"next")))
        assert (start_offset(talk, "some"), end_offset(talk, "some")) == (10, 11)


def test_refused_deletions_have_an_error(quick: Broker) -> None:
    quick.create_topic("keyed", configs={"cleanup.policy": "compact"})
    quick.create_topic("both", configs={"cleanup.policy": "compact,delete"})
    with Conversation(quick) as talk:
        assert result(talk, "keyed", 0) == (-1, "POLICY_VIOLATION")
        assert result(talk, "both", 0) == (0, "NONE")
        assert result(talk, "both", 0, partition=7) == (-1, "UNKNOWN_TOPIC_OR_PARTITION")
        assert result(talk, "nowhere", 0) == (-1, "UNKNOWN_TOPIC_OR_PARTITION")


def test_retention_removes_segments_of_deleted_records(quick: Broker, data: Path) -> None:
    quick.create_topic("large", configs={"segment.bytes": 1048576})
    with Conversation(quick) as talk:
        for _ in range(4):
            talk.ask(*produce("large", batch(b"x" * 600_000)))
        result(talk, "large", 2)
    wait_until(
        lambda: (
            sorted(path.name for path in (data / "large-0").glob("*.log*"))
            == [f"{2:020d}.log", f"{3:020d}.log"]
        )
    )


def test_the_start_of_a_log_survives_a_restart(quick: Broker) -> None:
    quick.create_topic("some")
    with Conversation(quick) as talk:
        talk.ask(*produce("some", batch(*[b"%d" % n for n in range(10)])))
        result(talk, "some", 7)
    quick.stop()
    quick.start()
    with Conversation(quick) as talk:
        assert (start_offset(talk, "some"), end_offset(talk, "some")) == (7, 10)


def test_the_start_of_a_log_survives_kill_nine_once_it_is_in_the_checkpoint(data: Path) -> None:
    with Broker(data, overrides=FAST, in_process=False) as broker:
        broker.create_topic("some")
        with Conversation(broker) as talk:
            talk.ask(*produce("some", batch(*[b"%d" % n for n in range(10)])))
            result(talk, "some", 7)
        checkpoint = data / "log-start-offset-checkpoint"
        wait_until(lambda: checkpoint.exists() and "some 0 7" in checkpoint.read_text())
        broker.kill()
        broker.start()
        with Conversation(broker) as talk:
            assert (start_offset(talk, "some"), end_offset(talk, "some")) == (7, 10)


def test_a_consumer_below_the_log_start_resets_to_it(quick: Broker) -> None:
    from confluent_kafka import Consumer, TopicPartition

    quick.create_topic("some")
    with Conversation(quick) as talk:
        talk.ask(*produce("some", batch(*[b"%d" % n for n in range(10)])))
        result(talk, "some", 6)
    consumer = Consumer(
        {"bootstrap.servers": quick.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition("some", 0, 2)])
    got = [message.value() for message in consumer.consume(4, timeout=30)]
    consumer.close()
    assert got == [b"6", b"7", b"8", b"9"]


def test_a_deleted_topic_leaves_no_folder(quick: Broker, data: Path) -> None:
    quick.create_topic("gone", partitions=3)
    with Conversation(quick) as talk:
        talk.ask(*produce("gone", batch(b"1")))
    quick.delete_topic("gone")
    wait_until(lambda: not list(data.glob("gone-*")))


def test_a_folder_that_waits_for_removal_is_removed_after_a_restart(data: Path) -> None:
    with Broker(data, overrides={"log.segment.delete.delay.ms": 3_600_000}) as broker:
        broker.create_topic("gone", partitions=2)
        broker.delete_topic("gone")
        wait_until(lambda: len(list(data.glob("gone-*-delete"))) == 2)
        assert not (data / "gone-0").exists()
    with Broker(data, overrides=FAST):
        wait_until(lambda: not list(data.glob("gone-*")))


def test_records_of_a_transaction_that_may_still_be_committed_stay(quick: Broker) -> None:
    from confluent_kafka import Producer

    old_ms = int(time.time() * 1000) - 30 * DAY_MS
    week = {"retention.ms": 7 * DAY_MS}
    quick.create_topic("pending", configs=week)
    quick.create_topic("plain", configs=week)
    producer = Producer({"bootstrap.servers": quick.bootstrap, "transactional.id": "t"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("pending", b"x", timestamp=old_ms)
    producer.flush(30)
    with Conversation(quick) as talk:
        for _ in range(3):  # each round of retention takes the newest of these
            end = end_offset(talk, "plain")
            talk.ask(*produce("plain", batch(b"x", timestamp=old_ms)))
            wait_until(lambda end=end: start_offset(talk, "plain") == end + 1)
        assert start_offset(talk, "pending") == 0
        producer.commit_transaction(30)

        wait_until(
            lambda: start_offset(talk, "pending") == 1
        )  # the marker is of today, and in the next segment
        assert end_offset(talk, "pending") == 2

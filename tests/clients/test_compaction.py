"""Compacted topics as clients see them: the last value of every key, at its own offset."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import KafkaError, TopicPartition

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .librdkafka import consumer, poll_until, produce, producer, read

SEGMENTS_OF_A_SECOND = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
    "delete.retention.ms": "100",
}
HOUR_MS = 3_600_000
LONG_AGO_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def cleaning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose cleaner looks often, and whose topics take old timestamps."""
    data = tmp_path_factory.mktemp("cleaning") / "data"
    with Broker(data, overrides={"log.cleaner.backoff.ms": 100}) as broker:
        yield broker


def keyed(pairs: Sequence[tuple[str, str | None]], at_ms: int) -> list[dict[str, object]]:
    return [{"key": key, "value": value, "partition": 0, "timestamp": at_ms} for key, value in pairs]


def segments(broker: Broker, topic: str) -> list[os.stat_result]:
    """The log's files in order; none while they are being renamed."""
    try:
        return [path.stat() for path in sorted((broker.data / f"{topic}-0").glob("*.log"))]
    except FileNotFoundError:
        return []


def is_smaller(broker: Broker, topic: str, size: int) -> bool:
    """Whether the first segment has lost something."""
    found = segments(broker, topic)
    return bool(found) and found[0].st_size < size


def offsets(broker: Broker, topic: str, count: int) -> list[int]:
    return [message.offset() or 0 for message in read(broker.bootstrap, topic, count)]


def test_eleven_records_with_repeated_keys_leave_six(cleaning: Broker) -> None:
    topic = "eleven"
    cleaning.create_topic(topic, configs=SEGMENTS_OF_A_SECOND)
    keys = ["K1", "K2", "K1", "K1", "K3", "K2", "K4", "K5", "K5", "K2", "K6"]
    produce(cleaning.bootstrap, topic, keyed([(key, f"V{i}") for i, key in enumerate(keys)], LONG_AGO_MS))
    full = segments(cleaning, topic)[0].st_size
    # A record of another hour: the segment of the eleven is closed, and may be cleaned.
    produce(cleaning.bootstrap, topic, keyed([("K7", "V11")], LONG_AGO_MS + HOUR_MS))
    wait_until(lambda: is_smaller(cleaning, topic, full), 30)

    found = read(cleaning.bootstrap, topic, 7)

    assert [message.offset() for message in found] == [3, 4, 6, 8, 9, 10, 11]
    assert [message.key() for message in found] == [b"K1", b"K3", b"K4", b"K5", b"K2", b"K6", b"K7"]
    assert [message.value() for message in found] == [
        f"V{offset}".encode() for offset in (3, 4, 6, 8, 9, 10, 11)
    ]


def test_a_deleted_key_leaves_a_tombstone_and_then_nothing(cleaning: Broker) -> None:
    topic = "deleted"
    cleaning.create_topic(topic, configs=SEGMENTS_OF_A_SECOND)
    produce(cleaning.bootstrap, topic, keyed([("a", "1"), ("b", "1"), ("a", None)], LONG_AGO_MS))

    def closed_and_cleaned(hour: int) -> None:
        """What was written is cleaned once more each time that a segment is closed."""
        before = [found.st_ino for found in segments(cleaning, topic)]
        produce(cleaning.bootstrap, topic, keyed([(f"other-{hour}", "1")], LONG_AGO_MS + hour * HOUR_MS))
        wait_until(lambda: all(found.st_ino not in before for found in segments(cleaning, topic)[:1]), 30)

    closed_and_cleaned(1)
    assert offsets(cleaning, topic, 2) == [1, 2]  # the tombstone is there for those who read on
    closed_and_cleaned(2)
    wait_until(lambda: len(segments(cleaning, topic)) == 2, 30)
    closed_and_cleaned(3)
    assert offsets(cleaning, topic, 3) == [1, 3, 4]


def test_a_record_without_a_key_is_refused(cleaning: Broker) -> None:
    cleaning.create_topic("keyless", configs={"cleanup.policy": "compact"})
    answers: list[int] = []
    ours = producer(cleaning.bootstrap)
    ours.produce(
        "keyless", value="no key", on_delivery=lambda error, _: answers.append(error.code() if error else 0)
    )
    assert ours.flush(30) == 0
    assert answers == [KafkaError.INVALID_RECORD]


def test_a_topic_that_becomes_compacted_is_cleaned(cleaning: Broker) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    topic = "later"
    cleaning.create_topic(
        topic, configs={**SEGMENTS_OF_A_SECOND, "cleanup.policy": "delete", "retention.ms": -1}
    )
    produce(cleaning.bootstrap, topic, keyed([("a", "1"), ("a", "2")], LONG_AGO_MS))
    produce(cleaning.bootstrap, topic, keyed([("b", "1")], LONG_AGO_MS + HOUR_MS))
    full = segments(cleaning, topic)[0].st_size

    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cleaning.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(10)

    wait_until(lambda: is_smaller(cleaning, topic, full), 30)
    assert offsets(cleaning, topic, 2) == [1, 2]


def test_who_reads_while_it_is_cleaned_misses_no_last_value(cleaning: Broker) -> None:
    """Readers from the beginning, over and over, while keys are overwritten: offsets grow, and the last value
    of every key that was there when reading began is seen, or a newer one."""
    topic = "moving"
    cleaning.create_topic(
        topic,
        configs={
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "internal.segment.bytes": "14000",
        },
    )
    rounds, key_count = 60, 50
    written: dict[bytes, int] = {}
    failures: list[str] = []
    done = threading.Event()

    def write() -> None:
        try:
            for number in range(rounds):
                pairs = [(f"k{index}", f"{number:06d}" + "x" * 100) for index in range(key_count)]
                produce(cleaning.bootstrap, topic, keyed(pairs, LONG_AGO_MS))
                written.update({key.encode(): number for key, _ in pairs})
        finally:
            done.set()

    def read_all() -> None:
        while not done.is_set():
            expected = dict(written)
            reader = consumer(cleaning.bootstrap)
            end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
            seen: dict[bytes, int] = {}
            last_offset = -1
            reader.assign([TopicPartition(topic, 0, 0)])
            while last_offset < end - 1:
                [message] = poll_until(reader, 1)
                offset = message.offset() or 0
                if offset <= last_offset:
                    failures.append(f"offset {offset} behind {last_offset}")
                last_offset = offset
                seen[message.key() or b""] = int((message.value() or b"")[:6])
            reader.close()
            for key, number in expected.items():
                if seen.get(key, -1) < number:
                    failures.append(f"{key!r}: saw {seen.get(key)}, {number} was written before")

    threads = [threading.Thread(target=write), *(threading.Thread(target=read_all) for _ in range(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    wait_until(lambda: 0 < sum(found.st_size for found in segments(cleaning, topic)) < 60_000, 30)

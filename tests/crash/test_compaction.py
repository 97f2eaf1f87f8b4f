"""kill -9 in the middle of compaction: the last value of every key is there, and cleaning goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

TOPIC = "killed"
KEYS = 40
ROUNDS = 5
EAGER = {"log.cleaner.backoff.ms": 20, "log.cleaner.io.max.bytes.per.second": 200_000}
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": 20_000,
    "min.cleanable.dirty.ratio": 0.01,
    "file.delete.delay.ms": 0,
}
# A kill at the first sight of one of these: while a segment is copied, while it is swapped, after.
SIGHTS = (".log.cleaned", ".log.swap", ".log.deleted")


def write(broker: Broker, number: int, last: dict[bytes, bytes]) -> None:
    """Every key ten times; what was acknowledged is noted."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 1})
    for turn in range(10):
        for index in range(KEYS):
            key, value = b"k%d" % index, b"%d %d " % (number, turn) + b"x" * 100
            producer.produce(TOPIC, value, key, 0)
            last[key] = value
        assert producer.flush(30) == 0


def read(broker: Broker) -> dict[bytes, bytes]:
    """The last value of every key, from the first offset to the end."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "all", "log_level": 0})
    where = TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(where, timeout=30)
    consumer.assign([where])
    found: dict[bytes, bytes] = {}
    offset = -1
    while offset < end - 1:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        assert (message.offset() or 0) > offset
        offset = message.offset() or 0
        found[message.key() or b""] = message.value() or b""
    consumer.close()
    return found


@pytest.mark.parametrize(
    "sight", [SIGHTS[0], *(pytest.param(each, marks=pytest.mark.long) for each in SIGHTS[1:])]
)
def test_every_last_value_outlives_a_kill(tmp_path: Path, sight: str) -> None:
    broker = Broker(tmp_path / "data", overrides=EAGER, in_process=False)
    last: dict[bytes, bytes] = {}
    folder = broker.data / f"{TOPIC}-0"
    with broker:
        broker.create_topic(TOPIC, configs=SETTINGS)
        for number in range(ROUNDS):
            write(broker, number, last)
            try:
                wait_until(lambda: any(name.name.endswith(sight) for name in folder.iterdir()), 2)
            except TimeoutError:
                pass  # too quick to be seen: killed at some other step
            broker.kill()
            broker.start()
            assert read(broker) == last
        written = ROUNDS * 10 * KEYS * 110
        wait_until(lambda: sizes(folder) < written / 3, 60)
        assert read(broker) == last


def sizes(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.glob("*.log")) or 1 << 40
    except FileNotFoundError:
        return 1 << 40  # renamed meanwhile

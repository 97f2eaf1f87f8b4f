"""One log, cleaned twice: by Apache Kafka's cleaner and by ours. What is left is the same, batch by batch."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.records.batch import DELETE_HORIZON_FLAG, headers
from barnabas.records.record import Record, read_records
from barnabas.storage.segments.transaction_index import decode
from barnabas.testing import Broker, apache
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java"), pytest.mark.slow]

TOPIC = "cleaned-twice"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LONG_AGO_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
NEVER = {"log.cleaner.backoff.ms": "3600000"}  # it looks once, before there is anything
AT_ONCE = {"log.cleaner.backoff.ms": "200"}
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "3000",  # the least for everyone else is a megabyte
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": str(30 * 24 * HOUR_MS),
    "index.interval.bytes": "100",
}


class Left(NamedTuple):
    """A batch of a cleaned log, without what depends on when it was cleaned."""

    base_offset: int
    last_offset: int
    attributes: int
    max_timestamp: int
    producer: tuple[int, int, int]
    records: list[Record]


def client(bootstrap: str) -> dict[str, str | int | bool]:
    return {"bootstrap.servers": bootstrap, "log_level": 0}


def write(bootstrap: str) -> None:
    """Plain batches of every codec with tombstones, idempotent ones, transactions that are committed and
    aborted, one of them over several segments."""
    for hour, codec in enumerate(CODECS):
        plain = Producer({**client(bootstrap), "compression.type": codec, "linger.ms": 50})
        safe = Producer({**client(bootstrap), "enable.idempotence": True, "compression.type": codec})
        at_ms = LONG_AGO_MS + hour * HOUR_MS
        for number in range(120):
            producer = safe if number % 3 == 0 else plain
            key = f"k{(number * 7 + hour * 3) % 40}" if number % 10 else f"only-{hour}-{number}"
            value = None if number % 6 == 5 else f"{hour} {number} " * 10
            producer.produce(TOPIC, value, key, 0, timestamp=at_ms + number)
            if number % 11 == 0:
                plain.flush(30)
        assert plain.flush(30) == safe.flush(30) == 0
        in_transaction(bootstrap, f"committed-{hour}", at_ms + 500, commit=True)
        in_transaction(bootstrap, f"aborted-{hour}", at_ms + 600, commit=False)
    long = begin(bootstrap, "long", at_ms + 700)
    produce_one(bootstrap, "large-1", "x" * 2500, at_ms + 800)
    produce_one(bootstrap, "large-2", "x" * 2500, at_ms + 900)
    long.abort_transaction(30)
    produce_one(bootstrap, "k5", None, at_ms + 900)
    # A producer that is still active, whose last record is overwritten: its batch stays, empty.
    now_ms = int(time.time() * 1000)
    produce_one(bootstrap, "again", "1", now_ms, idempotent=True)
    produce_one(bootstrap, "again", "2", now_ms)
    produce_one(bootstrap, "large-3", "x" * 2850, at_ms + 900)  # another segment
    produce_one(bootstrap, "k1", "the end", at_ms + 1000)


def begin(bootstrap: str, name: str, at_ms: int) -> Producer:
    producer = Producer({**client(bootstrap), "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(TOPIC, f"{name} {number}", f"k{number * 3}", 0, timestamp=at_ms + number)
    assert producer.flush(30) == 0
    return producer


def in_transaction(bootstrap: str, name: str, at_ms: int, *, commit: bool) -> None:
    producer = begin(bootstrap, name, at_ms)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def produce_one(bootstrap: str, key: str, value: str | None, at_ms: int, *, idempotent: bool = False) -> None:
    producer = Producer({**client(bootstrap), "enable.idempotence": idempotent})
    producer.produce(TOPIC, value, key, 0, timestamp=at_ms)
    assert producer.flush(30) == 0


def clean_to(data: Path, topic: str = TOPIC) -> int:
    """How far the cleaner says it has come."""
    path = data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def active_base_offset(data: Path, topic: str = TOPIC) -> int:
    return max((int(path.stem) for path in (data / f"{topic}-0").glob("*.log")), default=0)


def batches(data: Path) -> list[Left]:
    found = []
    for path in sorted((data / f"{TOPIC}-0").glob("*.log")):
        content = path.read_bytes()
        for position, header in headers(content):
            found.append(
                Left(
                    header.base_offset,
                    header.last_offset,
                    header.attributes,
                    header.max_timestamp,
                    (header.producer_id, header.producer_epoch, header.base_sequence),
                    read_records(content, position=position),
                )
            )
    return found


def aborted(data: Path) -> list[object]:
    paths = sorted((data / f"{TOPIC}-0").glob("*.txnindex"))
    return [entry for path in paths for entry in decode(path.read_bytes())]


class Folders(NamedTuple):
    before: Path
    apache: Path
    ours: Path


@pytest.fixture(scope="module")
def folders(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folders]:
    """The log as it was written, and as each of the two has cleaned it."""
    root = tmp_path_factory.mktemp("cleaned")
    found = Folders(root / "before", root / "apache", root / "ours")
    with ApacheKafka(found.before, NEVER) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)]).values():
            future.result(30)
        write(kafka.bootstrap)
    end = active_base_offset(found.before)
    shutil.copytree(found.before, found.apache)
    shutil.copytree(found.before, found.ours)
    with ApacheKafka(found.apache, AT_ONCE):
        wait_until(lambda: clean_to(found.apache) == end, 60)
    with Broker(found.ours, overrides=AT_ONCE):
        wait_until(lambda: clean_to(found.ours) == end, 60)
    yield found


def test_both_leave_the_same_batches_and_records(folders: Folders) -> None:
    ours, theirs = batches(folders.ours), batches(folders.apache)
    assert len(ours) < len(batches(folders.before))
    assert [each.base_offset for each in ours] == [each.base_offset for each in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert our == their
    assert any(each.attributes & DELETE_HORIZON_FLAG for each in ours)
    assert any(not each.records for each in ours)


def test_both_tell_readers_of_the_same_aborted_transactions(folders: Folders) -> None:
    assert aborted(folders.ours) == aborted(folders.apache) != []


def test_both_make_the_same_segments(folders: Folders) -> None:
    def segments(data: Path) -> list[str]:
        return sorted(path.name for path in (data / f"{TOPIC}-0").glob("*.log"))

    assert segments(folders.ours) == segments(folders.apache)
    assert len(segments(folders.ours)) < len(segments(folders.before))


def test_kafkas_tool_finds_nothing_wrong_with_what_we_left(folders: Folders) -> None:
    folder = folders.ours / f"{TOPIC}-0"
    logs = sorted(folder.glob("*.log"))
    files = ",".join(map(str, logs))
    done = apache.tool("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", files)
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    assert done.stdout.count("| offset:") == sum(len(each.records) for each in batches(folders.ours))

    indexes = [
        str(path)
        for kind in ("index", "timeindex")
        for path in sorted(folder.glob(f"*.{kind}"))
        if path.stat().st_size  # of an empty one the tool says nothing
    ]
    assert len(indexes) > 5
    sanity = apache.tool(
        "org.apache.kafka.tools.DumpLogSegments", "--index-sanity-check", "--files", ",".join(indexes)
    )
    assert sanity.stdout.count("passed sanity check") == len(indexes)
    verified = apache.tool(
        "org.apache.kafka.tools.DumpLogSegments", "--verify-index-only", "--files", ",".join(indexes)
    )
    assert "Mismatches" not in verified.stdout
    assert "Found timestamp mismatch" not in verified.stdout


def test_each_reads_what_the_other_has_cleaned(folders: Folders) -> None:
    def read(bootstrap: str) -> list[tuple[int, bytes, bytes | None]]:
        consumer = Consumer({**client(bootstrap), "group.id": "reader", "isolation.level": "read_committed"})
        found: list[tuple[int, bytes, bytes | None]] = []
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while not found or found[-1][2] != b"the end":
            message = consumer.poll(30)
            assert message is not None and message.error() is None
            found.append((message.offset() or 0, message.key() or b"", message.value()))
        consumer.close()
        return found

    with ApacheKafka(folders.ours, NEVER) as kafka:
        from_apache = read(kafka.bootstrap)
    with Broker(folders.apache, overrides=NEVER) as broker:
        from_ours = read(broker.bootstrap)
    assert from_apache == from_ours
    committed = [
        record for each in batches(folders.ours) if not each.attributes & 0x20 for record in each.records
    ]
    assert [offset for offset, _, _ in from_ours] == [record.offset for record in committed]


@pytest.mark.long
def test_apache_kafka_goes_on_with_groups_whose_topic_we_have_cleaned(java: None, tmp_path: Path) -> None:
    data, notes = tmp_path / "data", "n" * 4000
    settings = {**AT_ONCE, "log.cleaner.min.cleanable.ratio": "0.01", "offsets.topic.num.partitions": "1"}
    with Broker(data, overrides={**settings, "offsets.topic.segment.bytes": "1048576"}) as broker:
        broker.create_topic("read", partitions=2)
        consumer = Consumer({**client(broker.bootstrap), "group.id": "moving"})
        for offset in range(800):
            where = TopicPartition("read", offset % 2, offset, metadata=notes)
            consumer.commit(offsets=[where], asynchronous=False)
        consumer.close()
        topic = "__consumer_offsets"
        wait_until(lambda: clean_to(data, topic) == active_base_offset(data, topic) > 0, 30)
    logs = sorted((data / "__consumer_offsets-0").glob("*.log"))
    assert sum(path.stat().st_size for path in logs) < 2 << 20

    done = apache.tool(
        "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", ",".join(map(str, logs))
    )
    assert done.returncode == 0, done.stderr
    assert '"group":"moving"' in done.stdout
    assert "isvalid: false" not in done.stdout

    with ApacheKafka(data, NEVER) as kafka:
        reader = Consumer({**client(kafka.bootstrap), "group.id": "moving"})
        places = [TopicPartition("read", partition) for partition in range(2)]
        found: list[TopicPartition] = []

        def is_loaded() -> bool:
            """It answers before its coordinator has read the group."""
            with contextlib.suppress(KafkaException):
                found[:] = reader.committed(places, timeout=30)
            return bool(found)

        wait_until(is_loaded, 30, what="the group is loaded")
        reader.close()
    assert [where.offset for where in found] == [798, 799]
    assert [where.metadata for where in found] == [notes, notes]

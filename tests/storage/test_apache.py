"""Apache Kafka as the judge: it reads our files, we read its files, and both write the same ones."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition

from barnabas.records.batch import BatchHeader, headers
from barnabas.records.control import read_end_marker
from barnabas.records.record import read_records
from barnabas.storage import Log, LogDirs, LogSettings, TopicPartition
from barnabas.storage.segments.transaction_index import AbortedTransaction
from barnabas.testing import apache

from .building import NOW_MS, append, append_marker, batch_at, fill

pytestmark = [pytest.mark.java, pytest.mark.slow]

SEGMENT_BYTES = 1 << 20
SETTINGS = LogSettings(segment_bytes=SEGMENT_BYTES)
RECORDS = 20_000

# Topics whose segments end for other reasons than their size.
ROLLING = {
    "by-age": LogSettings(segment_ms=5000, index_interval_bytes=1000),
    "by-index": LogSettings(segment_index_bytes=1000, index_interval_bytes=100),
    "every-batch": LogSettings(segment_index_bytes=1000, index_interval_bytes=0),
}


def dump(*options: str) -> str:
    done = apache.tool("org.apache.kafka.tools.DumpLogSegments", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


KEPT = {
    "log.retention.ms": "-1"
}  # the records are of 2023: on a slow machine Kafka looks for old ones in time


@pytest.fixture
def ours(java: None, tmp_path: Path) -> Log:
    """A closed log of ours: three segments, an idempotent producer, aborted and committed transactions."""
    log = Log.create(
        f"{tmp_path}/t-0", LogSettings(segment_bytes=40_000, index_interval_bytes=1000), now_ms=NOW_MS
    )
    fill(log, 300, records=2, value_bytes=100)
    for number in range(200):
        append(log, batch_at(log.end_offset, 3, producer_id=5, sequence=3 * number, epoch=1))
    for number in range(20):
        batch = batch_at(log.end_offset, producer_id=6, sequence=number, transactional=True, epoch=1)
        append(log, batch)
        append_marker(log, 6, aborted=number % 2 == 0, epoch=1)
    log.close()
    return log


def test_kafka_reads_every_record_of_our_segments(ours: Log) -> None:
    text = dump("--deep-iteration", "--files", ",".join(segment.path for segment in ours.segments))

    assert len(ours.segments) > 2
    assert text.count("| offset:") == ours.end_offset
    assert "isvalid: false" not in text
    assert "endTxnMarker: ABORT" in text


def test_kafka_finds_our_indexes_sound(ours: Log) -> None:
    indexes = [segment.path_of(kind) for segment in ours.segments for kind in (".index", ".timeindex")]
    sanity = dump("--index-sanity-check", "--files", ",".join(indexes))
    entries = dump("--verify-index-only", "--files", ",".join(indexes))

    assert sanity.count("passed sanity check") == len(indexes)
    assert "Mismatches" not in entries
    assert "Found timestamp mismatch" not in entries


def test_kafka_reads_our_producer_snapshots_and_transaction_index(ours: Log) -> None:
    snapshot = dump("--files", f"{ours.directory}/{ours.end_offset:020d}.snapshot")
    assert "producerId: 5" in snapshot
    assert "producerId: 6" in snapshot

    transactions = dump("--files", ours.active.path_of(".txnindex"))
    assert transactions.count("producerId: 6") == len(ours.active.transactions().entries) > 0


@pytest.fixture(scope="module")
def kafkas_folder(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A folder that Apache Kafka wrote and left in order, and a copy taken when it was killed before."""
    data = tmp_path_factory.mktemp("kafka") / "data"
    killed = data.parent / "killed"
    kafka = apache.ApacheKafka(data, {"log.segment.bytes": str(SEGMENT_BYTES), "num.partitions": "2", **KEPT})
    try:
        kafka.start()
        for name, wanted in ROLLING.items():
            configs = {
                "segment.ms": str(wanted.segment_ms),
                "segment.index.bytes": str(wanted.segment_index_bytes),
                "index.interval.bytes": str(wanted.index_interval_bytes),
                "retention.ms": "-1",
            }
            kafka.create_topic(name, 1, configs)
        produce(kafka.bootstrap)
        kafka.kill()
        shutil.copytree(data, killed)
        kafka.start()
        kafka.stop()
        yield data, killed
    finally:
        kafka.close()


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": 3000, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(
            "plain",
            value=b"v" * (number % 200),
            partition=number % 2,
            timestamp=NOW_MS + number * 7919 % 100_000,
        )
        if number % 100 == 0:
            producer.flush()
    for number in range(3000):
        for topic in ROLLING:
            producer.produce(
                topic,
                value=b"v" * (number % 100),
                partition=0,
                timestamp=NOW_MS + 5 * number + number * 7919 % 300,
            )
        if number % 10 == 0:
            producer.flush()
    producer.flush()
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    transactional.init_transactions(60)
    for number in range(30):
        transactional.begin_transaction()
        for _ in range(5):
            transactional.produce("transactions", value=b"v" * 50, partition=0)
        transactional.flush()
        if number % 3:
            transactional.commit_transaction(60)
        else:
            transactional.abort_transaction(60)
    wait_for_markers(bootstrap, 180)


def wait_for_markers(bootstrap: str, end_offset: int) -> None:
    """Markers are written after the producer was told that its transaction has ended."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    deadline = time.monotonic() + 60
    while consumer.get_watermark_offsets(ClientPartition("transactions", 0), timeout=10)[1] < end_offset:
        assert time.monotonic() < deadline
    consumer.close()


def copy(folder: Path, to: Path) -> LogDirs:
    shutil.copytree(folder, to)
    dirs = LogDirs.open([str(to)], node_id=1)
    dirs.load(lambda topic: SETTINGS, now_ms=NOW_MS)
    return dirs


def read_through(log: Log) -> int:
    """Read the log as a consumer would; how many records it has."""
    offset, records = 0, 0
    while offset < log.end_offset:
        data = log.read(offset, 50_000).read()
        for position, header in headers(data):
            assert header.base_offset == offset
            records += len(read_records(data, position=position))
            offset = header.next_offset
    return records


@pytest.mark.parametrize("which", ["stopped", "killed"])
def test_a_folder_of_kafka_is_opened_and_read(
    kafkas_folder: tuple[Path, Path], tmp_path: Path, which: str
) -> None:
    dirs = copy(kafkas_folder[which == "killed"], tmp_path / "copy")
    try:
        assert dirs.dirs[0].is_clean == (which == "stopped")
        logs = [dirs.logs[TopicPartition("plain", 0)], dirs.logs[TopicPartition("plain", 1)]]
        assert [read_through(log) for log in logs] == [RECORDS // 2, RECORDS // 2]
        assert all(len(log.segments) > 1 and len(log.producers) == 1 for log in logs)
        transactions = dirs.logs[TopicPartition("transactions", 0)]
        assert read_through(transactions) == 180
        assert len(transactions.aborted_transactions(0, 1000)) == 10
        assert transactions.producers.first_undecided_offset() is None
        found = logs[0].max_timestamp_offset()
        assert found is not None
        assert found.timestamp == max(NOW_MS + n * 7919 % 100_000 for n in range(0, RECORDS, 2))
        assert logs[0].topic_id is not None
    finally:
        dirs.abandon()


def test_recovery_rebuilds_the_files_that_kafka_left_when_it_stopped(
    kafkas_folder: tuple[Path, Path], tmp_path: Path
) -> None:
    stopped, killed = kafkas_folder
    copy(killed, tmp_path / "copy").close()

    for name in ("plain-0", "plain-1", "transactions-0"):
        for path in (stopped / name).glob("*.*index"):
            assert (tmp_path / "copy" / name / path.name).read_bytes() == path.read_bytes(), path


@pytest.mark.parametrize("name", ["plain-0", "plain-1", "transactions-0", *(f"{name}-0" for name in ROLLING)])
def test_the_same_batches_give_the_same_files(
    kafkas_folder: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    """Log, indexes, producer snapshots and leader epochs: byte for byte what Apache Kafka made of them."""
    kafkas = kafkas_folder[0] / name
    log = Log.create(f"{tmp_path}/{name}", ROLLING.get(name.removesuffix("-0"), SETTINGS), now_ms=NOW_MS)
    for path in sorted(kafkas.glob("*.log")):
        data = bytearray(path.read_bytes())
        for position, header in headers(data):
            batch = memoryview(data)[position : position + header.size]
            replicate(log, batch, BatchHeader(batch))
    log.assign_epoch(2, log.end_offset)  # Kafka's, after it was started again
    log.close()

    compared = ("*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint")
    assert len(log.segments) > 1 or name == "transactions-0"
    for path in [path for pattern in compared for path in kafkas.glob(pattern)]:
        assert (Path(log.directory) / path.name).read_bytes() == path.read_bytes(), path.name


def replicate(log: Log, batch: memoryview, header: BatchHeader) -> None:
    log.stage(batch, header, NOW_MS)
    if header.is_control:
        marker = read_end_marker(batch)
        assert marker is not None
        completed = log.producers.apply_marker(header, marker.coordinator_epoch, aborted=marker.aborted)
        if completed is not None and marker.aborted:
            stable = log.producers.last_stable_offset_after(completed)
            log.add_aborted(AbortedTransaction(*completed[:3], stable))
    elif header.producer_id >= 0:
        log.producers.apply(header)
    log.write_staged()


@pytest.mark.parametrize(
    "orderly",
    [
        pytest.param(True, marks=pytest.mark.long, id="after an orderly end"),
        pytest.param(False, id="after a crash"),
    ],
)
def test_kafka_starts_on_logs_that_we_wrote(java: None, tmp_path: Path, orderly: bool) -> None:
    data = tmp_path / "data"
    with apache.ApacheKafka(data, KEPT) as kafka:
        kafka.create_topic("ours", 1, {"segment.bytes": str(SEGMENT_BYTES)})
    dirs = LogDirs.open([str(data)], node_id=1)
    dirs.load(lambda topic: SETTINGS, now_ms=NOW_MS)
    log = dirs.logs[TopicPartition("ours", 0)]
    fill(log, 3000, records=2, value_bytes=300)
    for number in range(20):
        append(log, batch_at(log.end_offset, producer_id=77, sequence=number, transactional=True))
        append_marker(log, 77, aborted=number % 2 == 0)
    if orderly:
        dirs.close()
    else:
        dirs.abandon()
        log.write_staged()

    with apache.ApacheKafka(data, KEPT) as kafka:
        consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "isolation.level": "read_committed"}
        )
        consumer.assign([ClientPartition("ours", 0, 0)])
        offsets: list[int] = []
        while len(offsets) < 6010:
            message = consumer.poll(30)
            assert message is not None, f"nothing after {len(offsets)} records"
            assert message.error() is None, message.error()
            offsets.append(message.offset())
        consumer.close()

    assert offsets == [*range(6000), *range(6002, 6040, 4)]

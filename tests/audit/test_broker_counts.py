"""The broker counts what is committed in its logs: exactly, by partition, whatever clients wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from audit.conftest import COUNTS
from audit.counted import T0, WIDTH, counts, ledger_of, wait_for_counts
from barnabas.audit.core.batch_counts import BatchCounts, Disorder, Opens
from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.contents import content_of
from barnabas.audit.core.messages import Tally
from barnabas.broker.audit.log_counts import count_slice
from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader, assign
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch
from barnabas.testing import Broker

NewTopic = Callable[..., str]


def produce(broker: Broker, topic: str, timestamps: list[int], partition: int = 0, **config: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, **config})
    for timestamp in timestamps:
        producer.produce(topic, b"value", partition=partition, timestamp=timestamp)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd"])
def test_batches_within_a_bucket_and_across_its_border_are_counted(
    counting: Broker, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic(2)
    produce(counting, topic, [T0 + number for number in range(50)], 0, **{"compression.type": codec})
    across = [T0 + WIDTH - 20 + number for number in range(50)]
    produce(counting, topic, across, 1, **{"compression.type": codec})
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 70, T0 + WIDTH: 30})
    cell = ledger_of(counting.bootstrap).columns[topic, T0]["cluster"]
    assert cell.by_partition() == {0: Tally(50), 1: Tally(20)}
    assert cell.hosts == ["broker-1"]


def test_retries_that_the_broker_recognizes_are_counted_once_and_others_twice(
    counting: Broker, new_topic: NewTopic
) -> None:
    """An idempotent producer's batch that comes again is not in the log again."""
    topic = new_topic()
    records = [Record(timestamp=T0 + number, value=b"x") for number in range(10)]
    once = bytes(build_batch(records, producer_id=77_000, producer_epoch=0, base_sequence=0))
    twice = bytes(build_batch(records))
    send_batches(counting.bootstrap, topic, [once, once, twice, twice])
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 30})


def send_batches(bootstrap: str, topic: str, batches: list[bytes]) -> None:
    from barnabas.client.core.producing import produce_request, produce_results
    from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse

    async def send() -> None:
        async with Cluster(parse_bootstrap(bootstrap)) as cluster:
            await cluster.topics([topic])
            place = TopicPartition(topic, 0)
            leader = await cluster.leader_of(place, cluster.patience(5_000))
            connection = await cluster.connection_to(leader.address)
            version = connection.version_for(ProduceRequest)
            for batch in batches:
                request = produce_request(
                    [(place, bytearray(batch))], cluster.topology.topics, version, acks=-1, timeout_ms=5_000
                )
                response = await connection.send(request, ProduceResponse, version=version)
                for _, result in produce_results(response, cluster.topology.topic_names()):
                    assert not result.error_code, result

    asyncio.run(send())


def test_aborted_transactions_are_counted_apart_and_markers_not_at_all(
    counting: Broker, new_topic: NewTopic
) -> None:
    topic = new_topic()
    producer = Producer({"bootstrap.servers": counting.bootstrap, "transactional.id": f"{topic}-id"})
    producer.init_transactions()
    for number, is_commit in enumerate([True, False, True, False]):
        producer.begin_transaction()
        for each in range(10 + number):
            producer.produce(topic, b"v", timestamp=T0 + each)
        producer.flush()
        if is_commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 10 + 12})
    assert counts(counting.bootstrap, topic, "cluster", "aborted") == {T0: 11 + 13}


def test_records_of_an_open_transaction_wait(counting: Broker, new_topic: NewTopic) -> None:
    topic = new_topic()
    produce(counting, topic, [T0])
    producer = Producer({"bootstrap.servers": counting.bootstrap, "transactional.id": f"{topic}-id"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"v", timestamp=T0)
    producer.flush()
    produce(counting, topic, [T0])
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 1})
    other = new_topic()
    produce(counting, other, [T0])
    wait_for_counts(counting.bootstrap, other, "cluster", {T0: 1})  # a later round of the counter
    assert counts(counting.bootstrap, topic, "cluster") == {T0: 1}
    producer.commit_transaction()
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 3})


def test_records_without_a_timestamp_have_a_bucket_of_their_own(
    counting: Broker, new_topic: NewTopic
) -> None:
    topic = new_topic()
    send_batches(counting.bootstrap, topic, [bytes(build_batch([Record(timestamp=-1, value=b"x")] * 3))])
    wait_for_counts(counting.bootstrap, topic, "cluster", {-1: 3})


def test_append_time_is_the_time_that_counts(counting: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    produce(counting, topic, [T0] * 5)
    from barnabas.testing.waiting import wait_until

    wait_until(lambda: sum(counts(counting.bootstrap, topic, "cluster").values()) == 5, 30)
    assert T0 not in counts(counting.bootstrap, topic, "cluster")


def test_a_topic_that_is_deleted_and_made_again_is_counted_from_its_start(
    counting: Broker, new_topic: NewTopic
) -> None:
    topic = new_topic()
    produce(counting, topic, [T0] * 7)
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 7})
    counting.delete_topic(topic)
    counting.create_topic(topic)
    produce(counting, topic, [T0] * 2)
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 9})


def test_a_broker_that_starts_again_goes_on_where_it_counted_last(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", overrides=COUNTS, in_process=False) as broker:
        broker.create_topic("orders")
        produce(broker, "orders", [T0] * 10)
        wait_for_counts(broker.bootstrap, "orders", "cluster", {T0: 10})
        for number in range(2):
            broker.kill()
            broker.start()
            produce(broker, "orders", [T0] * 5)
            wait_for_counts(broker.bootstrap, "orders", "cluster", {T0: 15 + 5 * number})
        ledger = ledger_of(broker.bootstrap)
        assert not list(ledger.gaps()) and not ledger.conflicts


def test_records_that_are_deleted_before_they_are_counted_are_told(tmp_path: Path) -> None:
    """Counting begins after the records were deleted: the offsets between are known to be missing."""
    with Broker(tmp_path / "data", overrides=COUNTS, in_process=False) as broker:
        broker.create_topic("orders")
        produce(broker, "orders", [T0] * 10)
        wait_for_counts(broker.bootstrap, "orders", "cluster", {T0: 10})
    silent = {**COUNTS, "barnabas.audit.counts.enable": "false"}
    with Broker(tmp_path / "data", overrides=silent, in_process=False, port=broker.port) as broker:
        produce(broker, "orders", [T0] * 6)
        delete_before(broker.bootstrap, "orders", 14)
    with Broker(tmp_path / "data", overrides=COUNTS, in_process=False, port=broker.port) as broker:
        wait_for_counts(broker.bootstrap, "orders", "cluster", {T0: 12})
        assert ledger_of(broker.bootstrap).expired == {("cluster", "orders"): 4}


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    async def delete() -> None:
        async with Cluster(parse_bootstrap(bootstrap)) as cluster:
            await Admin(cluster).delete_records({TopicPartition(topic, 0): offset})

    asyncio.run(delete())


# -- counting without a broker -----------------------------------------------------------------------


def counted(
    records: list[Record], opens: Opens, start: int = 0, **options: object
) -> tuple[dict[int, int], int]:
    batch = bytes(build_batch(records, **options))  # type: ignore[arg-type]
    counts = BatchCounts(start, WIDTH, T0, opens)
    counts.add(BatchHeader(batch), lambda: batch, is_aborted=False)
    return {entry.bucket_ms: entry.tally.counted for entry in counts.entries(0)}, counts.opened


def test_a_batch_in_one_bucket_is_not_opened() -> None:
    records = [Record(timestamp=T0 + 60_000 + number, value=b"x") for number in range(100)]
    assert counted(records, Opens.HEADERS, compression=Compression.GZIP) == ({T0: 100}, 0)
    assert counted(records, Opens.RECORDS, compression=Compression.GZIP) == ({T0: 100}, 1)


def test_a_record_older_than_the_first_one_of_its_batch_is_found_near_the_start_of_a_bucket() -> None:
    """A header tells the first and the largest timestamp, not the smallest."""
    for late, opens in ((5, Opens.HEADERS), (9_999, Opens.HEADERS), (5, Opens.RECORDS)):
        records = [Record(timestamp=T0 + late, value=b"x"), Record(timestamp=T0 - 5, value=b"x")]
        assert counted(records, opens) == ({T0 - WIDTH: 1, T0: 1}, 1)


def test_batches_are_trusted_as_far_as_others_were_in_order() -> None:
    """A partition in which a record was 40 s older than the first one of its batch may have more of them."""
    disorder, found = Disorder(WIDTH), dict[int, int]()
    far = [Record(timestamp=T0 + 30_000, value=b"x"), Record(timestamp=T0 - 5, value=b"x")]
    near = [Record(timestamp=T0 + 5_000, value=b"x"), Record(timestamp=T0 - 35_000, value=b"x")]
    assert counted(far, Opens.HEADERS) == ({T0: 2}, 0)  # one alone cannot be told
    for records in (near, far):
        batch = bytes(build_batch(records))
        counts = BatchCounts(0, WIDTH, T0, Opens.HEADERS, disorder)
        assert counts.add_plain(batch, 0, len(batch)) == 0
        counts.add(BatchHeader(batch), lambda batch=batch: batch, is_aborted=False)  # type: ignore[misc]
        for entry in counts.entries(0):
            found[entry.bucket_ms] = found.get(entry.bucket_ms, 0) + entry.tally.counted
    assert found == {T0 - WIDTH: 2, T0: 2} and disorder.guard_ms == 80_000


def test_contents_are_summed_whatever_the_order_the_batches_and_the_codec() -> None:
    records = [
        Record(
            timestamp=T0 + number,
            key=None if number % 3 else b"k",
            value=None if number == 5 else b"%d" % number,
        )
        for number in range(20)
    ]

    def content(some: list[Record], **options: object) -> tuple[int, int]:
        batch = bytes(build_batch(some, **options))  # type: ignore[arg-type]
        counts = BatchCounts(0, WIDTH, T0, Opens.CONTENTS)
        counts.add(BatchHeader(batch), lambda: batch, is_aborted=False)
        [entry] = counts.entries(0)
        return entry.tally.summed, entry.tally.content

    expected = sum(content_of(each.key, each.value, each.timestamp) for each in records) % 2**64
    assert content(records) == content(records[::-1], compression=Compression.ZSTD) == (20, expected)
    assert content([*records[1:], records[1]])[1] != expected, "one is lost, and another one comes twice"


@given(st.binary(max_size=20), st.binary(max_size=20), st.integers(0, 2**41))
def test_contents_that_differ_have_other_numbers(key: bytes, value: bytes, stamp: int) -> None:
    others = [(key, None, stamp), (None, value, stamp), (key, value, stamp + 1), (value, key, stamp)]
    others += [(key, value + b"x", stamp), (key + b"x", value, stamp), (None, None, stamp)]
    mine = content_of(key, value, stamp)
    assert all(content_of(*other) != mine for other in others if other != (key, value, stamp))


def test_a_batch_that_cannot_be_read_is_told_and_passed_over() -> None:
    batch = bytearray(build_batch([Record(timestamp=T0 + number, value=b"x" * 30) for number in range(5)]))
    batch[-40:] = bytes(40)
    counts = BatchCounts(0, WIDTH, T0, Opens.RECORDS)
    counts.add(BatchHeader(batch), lambda: bytes(batch), is_aborted=False)
    assert (counts.entries(0), counts.damaged, counts.end) == ((), 5, 5)


def test_the_first_records_of_a_batch_may_be_deleted() -> None:
    records = [Record(timestamp=T0, value=b"x")] * 10
    assert counted(records, Opens.HEADERS, start=4) == ({T0: 6}, 1)
    assert counted(records, Opens.HEADERS, start=4, append_time_ms=T0 + WIDTH) == ({T0 + WIDTH: 6}, 1)


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(-1, 3 * 1_000), min_size=1, max_size=5),
            st.booleans(),
            st.sampled_from([None, 500, 2_500]),
        ),
        max_size=12,
    ),
    st.sampled_from(Opens),
)
def test_headers_are_counted_as_records_would_be(
    batches: list[tuple[list[int], bool, int | None]], opens: Opens
) -> None:
    """Of batches whose first record is the oldest: the short way, the long way and the records agree, and
    where all are opened those of other batches too."""
    written, truth, offset = b"", dict[int, int](), 0
    for stamps, is_control, append_time in batches:
        rising = sorted(stamps) if opens is Opens.HEADERS else stamps
        records = [Record(timestamp=stamp, value=b"x") for stamp in rising]
        options = {"append_time_ms": append_time, "control": is_control, "base_offset": offset}
        written += bytes(build_batch(records, **options))  # type: ignore[arg-type]
        offset += len(stamps)
        for stamp in rising:
            bucket = bucket_of(stamp if append_time is None else append_time, 1_000)
            truth[bucket] = truth.get(bucket, 0) + (not is_control)
    counts = BatchCounts(0, 1_000, 0, opens)
    position = 0
    while position < len(written):
        behind = counts.add_plain(written, position, len(written))
        if behind == position:
            header = BatchHeader(written, position)
            batch = written[position : position + header.size]
            counts.add(header, lambda batch=batch: batch, is_aborted=False)  # type: ignore[misc]
            behind += header.size
        position = behind
    found = {entry.bucket_ms: entry.tally.counted for entry in counts.entries(0)}
    assert found == {bucket: count for bucket, count in truth.items() if count}
    assert (counts.end, counts.batches) == (offset, len(batches))


def test_records_of_more_buckets_than_a_message_holds_take_several(
    counting: Broker, new_topic: NewTopic
) -> None:
    """A producer with random timestamps: readers refuse messages that are too long."""
    topic = new_topic()
    stamps = [T0 + number * 7 % 1_200 * WIDTH for number in range(1_200)]
    produce(counting, topic, stamps, **{"linger.ms": 500})
    wait_for_counts(counting.bootstrap, topic, "cluster", dict.fromkeys(stamps, 1))


def test_a_partition_with_more_than_one_message_counts_is_caught_up_with_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.broker.audit.cluster_counter.PARTITION_BYTES_MAX", 1)
    monkeypatch.setattr("barnabas.broker.audit.log_counts.SLICE_BYTES", 4_096)
    slow = {**COUNTS, "barnabas.audit.counts.interval.ms": "1500"}
    with Broker(overrides=slow) as broker:
        broker.create_topic("orders", 1)
        produce(broker, "orders", [T0] * 20_000, **{"batch.size": 1_000})
        wait_for_counts(broker.bootstrap, "orders", "cluster", {T0: 20_000})


class CountedReads:
    """A slice of a log in memory."""

    def __init__(self, log: bytes) -> None:
        self.log = log
        self.sizes: list[int] = []

    def __len__(self) -> int:
        return len(self.log)

    def read_part(self, start: int, count: int) -> bytes:
        self.sizes.append(count)
        return self.log[start : start + count]


def test_headers_of_large_batches_are_read_alone_and_a_pause_comes_with_a_hundred_of_them() -> None:
    """A pause costs as much processor time as ten headers."""
    whole, log, batches = (
        bytes(build_batch([Record(timestamp=T0 + WIDTH // 2, value=bytes(9_000))])),
        b"",
        400,
    )
    for number in range(batches):
        batch = bytearray(whole)
        assign(batch, 0, number, 0)
        log += batch
    reads, pauses = CountedReads(log), list[None]()
    counts = BatchCounts(0, WIDTH, T0)
    count_slice(reads, counts, (), lambda: pauses.append(None))  # type: ignore[arg-type]
    assert counts.entries(0)[0].tally == Tally(batches)
    assert len(pauses) == 3
    assert sum(reads.sizes) < 2 * batches * BATCH_OVERHEAD

"""confluent-kafka: what is produced comes back the same, whatever it is and however it was compressed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    TopicPartition,
)

from .conftest import NewTopicName, Served
from .librdkafka import consumer, poll_until, produce, producer, read

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_as_they_were_produced(
    broker: Served, new_topic: NewTopicName, compression: str
) -> None:
    topic = new_topic()
    sent = [(b"key %d" % n, b"value %d " % n * 20) for n in range(2_000)]

    produce(broker.bootstrap, topic, ({"key": k, "value": v} for k, v in sent), compression_type=compression)
    got = read(broker.bootstrap, topic, len(sent))

    assert [(m.key(), m.value()) for m in got] == sent
    assert [m.offset() for m in got] == list(range(len(sent)))


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("sent_as", ["none", "lz4"])
def test_a_topic_with_its_own_compression_recompresses(
    broker: Served, new_topic: NewTopicName, wanted: str, sent_as: str
) -> None:
    topic = new_topic(configs={"compression.type": wanted})
    sent = [(b"key %d" % n, b"value %d " % n * 20) for n in range(500)]

    produce(broker.bootstrap, topic, ({"key": k, "value": v} for k, v in sent), compression_type=sent_as)
    got = read(broker.bootstrap, topic, len(sent))

    assert [(m.key(), m.value()) for m in got] == sent


def test_headers_keep_order_repetition_and_nulls(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    headers = [("b", b"2"), ("a", b"1"), ("b", b"3"), ("empty", b""), ("null", None), ("ключ", b"\x00\xff")]

    produce(broker.bootstrap, topic, [{"value": b"v", "headers": headers}, {"value": b"w"}])
    first, second = read(broker.bootstrap, topic, 2)

    assert first.headers() == headers
    assert second.headers() is None


def test_null_and_empty_keys_and_values_stay_apart(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    pairs = [(None, None), (b"", b""), (None, b""), (b"", None), (b"k", None), (None, b"v")]

    produce(broker.bootstrap, topic, ({"key": k, "value": v} for k, v in pairs))
    got = read(broker.bootstrap, topic, len(pairs))

    assert [(m.key(), m.value()) for m in got] == pairs


def test_create_time_is_the_producers(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    times = [1_700_000_000_000 + n * 1_000 for n in (3, 1, 2)]

    produce(broker.bootstrap, topic, ({"value": b"v", "timestamp": t} for t in times))
    got = read(broker.bootstrap, topic, len(times))

    assert [m.timestamp() for m in got] == [(TIMESTAMP_CREATE_TIME, t) for t in times]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_log_append_time_is_the_brokers(broker: Served, new_topic: NewTopicName, compression: str) -> None:
    topic = new_topic(configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)

    messages = ({"value": b"v%d" % n, "timestamp": 1_000} for n in range(10))
    produce(broker.bootstrap, topic, messages, compression_type=compression)
    got = read(broker.bootstrap, topic, 10)

    after = int(time.time() * 1000)
    assert {m.timestamp()[0] for m in got} == {TIMESTAMP_LOG_APPEND_TIME}
    assert all(before <= m.timestamp()[1] <= after for m in got)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_delivers(broker: Served, new_topic: NewTopicName, acks: str) -> None:
    topic = new_topic()

    delivered = produce(broker.bootstrap, topic, ({"value": b"%d" % n} for n in range(100)), acks=acks)

    assert len(delivered) == 100
    assert [m.value() for m in read(broker.bootstrap, topic, 100)] == [b"%d" % n for n in range(100)]
    if acks != "0":
        assert [m.offset() for m in delivered] == list(range(100))


def test_a_key_stays_in_its_partition_in_order(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=40)
    sent = [(b"key %d" % (n % 100), b"%d" % n) for n in range(3_000)]

    produce(broker.bootstrap, topic, ({"key": k, "value": v} for k, v in sent))
    got = read(broker.bootstrap, topic, len(sent), partitions=range(40))

    homes: dict[bytes, set[int]] = defaultdict(set)
    values: dict[bytes, list[int]] = defaultdict(list)
    for message in got:
        homes[message.key()].add(message.partition())
        values[message.key()].append(int(message.value()))
    assert all(len(home) == 1 for home in homes.values())
    assert all(each == sorted(each) and len(each) == 30 for each in values.values())


def test_an_idempotent_producer_keeps_order_with_five_in_flight(
    broker: Served, new_topic: NewTopicName
) -> None:
    topic = new_topic(partitions=3)
    messages = [{"value": b"%d" % n, "partition": n % 3} for n in range(6_000)]

    settings = {"enable_idempotence": True, "linger_ms": 0, "batch_num_messages": 50}
    produce(broker.bootstrap, topic, messages, **settings)

    for partition in range(3):
        got = read(broker.bootstrap, topic, 2_000, partitions=[partition])
        assert [int(m.value()) for m in got] == list(range(partition, 6_000, 3))


def test_large_messages_pass_where_the_topic_allows_them(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"max.message.bytes": "12000000"})
    value = bytes(range(256)) * 40_000

    produce(broker.bootstrap, topic, [{"value": value}], message_max_bytes=20_000_000)
    [got] = read(broker.bootstrap, topic, 1)

    assert got.value() == value


def test_a_message_over_the_limit_is_refused_and_the_next_one_is_not(
    broker: Served, new_topic: NewTopicName
) -> None:
    topic = new_topic(configs={"max.message.bytes": "1000"})
    errors: list[KafkaError | None] = []
    ours = producer(broker.bootstrap, batch_num_messages=1)

    ours.produce(topic, b"x" * 2_000, on_delivery=lambda error, _: errors.append(error))
    ours.flush(30)
    ours.produce(topic, b"small", on_delivery=lambda error, _: errors.append(error))
    ours.flush(30)

    refused, taken = errors
    assert refused is not None and refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert taken is None
    assert [m.value() for m in read(broker.bootstrap, topic, 1)] == [b"small"]


def test_producing_to_an_unknown_topic_creates_it(broker: Served, fresh_name: Callable[[], str]) -> None:
    topic = fresh_name()

    produce(broker.bootstrap, topic, [{"value": b"first"}])

    assert [m.value() for m in read(broker.bootstrap, topic, 1)] == [b"first"]


def test_asking_for_an_unknown_topic_creates_it_only_where_the_client_allows_it(
    broker: Served, fresh_name: Callable[[], str]
) -> None:
    topic = fresh_name()

    shy = consumer(broker.bootstrap)
    try:
        error = shy.list_topics(topic, timeout=30).topics[topic].error
        assert error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert topic not in shy.list_topics(timeout=30).topics
    finally:
        shy.close()

    bold = consumer(broker.bootstrap, allow_auto_create_topics=True)
    try:
        bold.assign([TopicPartition(topic, 0, 0)])
        produce(broker.bootstrap, topic, [{"value": b"v"}])
        assert [m.value() for m in poll_until(bold, 1)] == [b"v"]
    finally:
        bold.close()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_both_isolation_levels_read_plain_records(
    broker: Served, new_topic: NewTopicName, isolation: str
) -> None:
    topic = new_topic()
    produce(broker.bootstrap, topic, ({"value": b"%d" % n} for n in range(10)))

    assert len(read(broker.bootstrap, topic, 10, isolation_level=isolation)) == 10


def test_a_waiting_reader_gets_a_record_as_soon_as_it_is_produced(
    broker: Served, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    reader = consumer(broker.bootstrap, fetch_wait_max_ms=20_000)
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        assert reader.poll(0.3) is None
        produce(broker.bootstrap, topic, [{"value": b"news"}])
        message = reader.poll(10)
        assert message is not None and message.value() == b"news"
    finally:
        reader.close()


def test_a_small_fetch_size_still_makes_progress(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    sent = [bytes([n]) * 50_000 for n in range(20)]
    produce(broker.bootstrap, topic, ({"value": v} for v in sent), batch_num_messages=1)

    settings = {"fetch_message_max_bytes": 1_000, "fetch_max_bytes": 1_000, "message_max_bytes": 1_000}
    got = read(broker.bootstrap, topic, len(sent), **settings)

    assert [m.value() for m in got] == sent

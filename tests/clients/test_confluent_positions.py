"""confluent-kafka: where a reader starts, seeks and ends, and what the broker says about offsets."""

from __future__ import annotations

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from .conftest import NewTopicName, Served
from .librdkafka import consumer, poll_until, produce, read


def numbered(broker: Served, topic: str, count: int, partition: int = 0) -> None:
    """Records 0, 1, 2 ... with timestamps 1000, 2000, 3000 ... in several batches."""
    messages = (
        {"value": b"%d" % n, "timestamp": (n + 1) * 1_000, "partition": partition} for n in range(count)
    )
    produce(broker.bootstrap, topic, messages, batch_num_messages=7)


@pytest.fixture
def reader(broker: Served) -> Consumer:
    made = consumer(broker.bootstrap)
    yield made
    made.close()


def test_an_assigned_offset_is_where_reading_starts(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"message.timestamp.type": "CreateTime", "retention.ms": "-1"})
    numbered(broker, topic, 50)

    for start in (0, 1, 20, 21, 48, 49):
        got = read(broker.bootstrap, topic, 50 - start, offset=start)
        assert [m.offset() for m in got] == list(range(start, 50))


def test_seek_goes_back_and_forth(broker: Served, new_topic: NewTopicName, reader: Consumer) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    numbered(broker, topic, 100)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert [m.offset() for m in poll_until(reader, 10)] == list(range(10))

    for target in (90, 5, 50, 0):
        reader.seek(TopicPartition(topic, 0, target))
        assert [m.offset() for m in poll_until(reader, 5)] == list(range(target, target + 5))


def test_a_reader_at_the_end_sees_only_what_comes_later(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    produce(broker.bootstrap, topic, [{"value": b"old"}])
    late = consumer(broker.bootstrap, enable_partition_eof=True)
    try:
        late.assign([TopicPartition(topic, 0, OFFSET_END)])
        end = late.poll(30)
        assert end is not None and end.error().code() == KafkaError._PARTITION_EOF and end.offset() == 1
        produce(broker.bootstrap, topic, [{"value": b"new"}])
        assert [m.value() for m in poll_until(late, 1)] == [b"new"]
    finally:
        late.close()


def test_watermarks_are_the_first_and_the_next_offset(
    broker: Served, new_topic: NewTopicName, reader: Consumer
) -> None:
    topic = new_topic(partitions=2, configs={"retention.ms": "-1"})
    numbered(broker, topic, 12, partition=1)

    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (0, 0)
    assert reader.get_watermark_offsets(TopicPartition(topic, 1), timeout=30) == (0, 12)


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(0, 0), (1_000, 0), (1_001, 1), (20_000, 19), (20_500, 20), (50_000, 49)]
)
def test_offsets_for_times_finds_the_first_record_at_or_after(
    broker: Served, new_topic: NewTopicName, reader: Consumer, timestamp: int, offset: int
) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    numbered(broker, topic, 50)

    [found] = reader.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=30)

    assert found.offset == offset


def test_offsets_for_times_after_the_last_record_is_the_end(
    broker: Served, new_topic: NewTopicName, reader: Consumer
) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    numbered(broker, topic, 5)

    [found] = reader.offsets_for_times([TopicPartition(topic, 0, 9_000)], timeout=30)

    assert found.offset == OFFSET_END


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_offsets_for_times_looks_inside_compressed_batches(
    broker: Served, new_topic: NewTopicName, reader: Consumer, compression: str
) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    messages = ({"value": b"v", "timestamp": 1_000 + n} for n in range(100))
    produce(broker.bootstrap, topic, messages, compression_type=compression, linger_ms=100)

    [found] = reader.offsets_for_times([TopicPartition(topic, 0, 1_063)], timeout=30)

    assert found.offset == 63


def test_an_offset_out_of_range_is_an_error_or_a_reset(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(configs={"retention.ms": "-1"})
    numbered(broker, topic, 5)

    with pytest.raises(KafkaException) as caught:
        read(broker.bootstrap, topic, 1, offset=1_000)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET

    got = read(broker.bootstrap, topic, 5, offset=1_000, auto_offset_reset="earliest")
    assert [m.offset() for m in got] == [0, 1, 2, 3, 4]


def test_many_partitions_are_read_together(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=60)
    messages = [{"value": b"%d" % n, "partition": n % 60} for n in range(600)]
    produce(broker.bootstrap, topic, messages)

    got = read(broker.bootstrap, topic, 600, partitions=range(60))

    assert sorted(int(m.value()) for m in got) == list(range(600))
    assert {m.partition() for m in got} == set(range(60))

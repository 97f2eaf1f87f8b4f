"""Streams: offsets in the checkpoint, limits, new partitions and topics, data that is gone."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.spark.progress import behind_latest
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

from .topics import new_topic, reading, texts, values

_names = count()


class Stream:
    """A query into memory, that is started again from the same checkpoint."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.name = f"stream_{next(_names)}"
        self.found: list[str] = []

    def start(self, frame: Any, **trigger: Any) -> Any:
        def collect(batch: Any, _: int) -> None:
            self.found += texts(batch)

        writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(self._folder))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self, frame: Any, **trigger: Any) -> Any:
        query = self.start(frame, **(trigger or {"availableNow": True}))
        assert query.awaitTermination(100)
        return query


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path / "checkpoint")


def test_a_stream_goes_on_where_it_stopped(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker, 2)
    values(broker, topic, ["a", "b"], 0)
    values(broker, topic, ["c"], 1)
    frame = reading(spark.readStream, broker, topic, startingOffsets="earliest")
    query = stream.run(frame)
    assert sorted(stream.found) == ["a", "b", "c"]
    assert json.loads(query.lastProgress["sources"][0]["endOffset"]) == {topic: {"0": 2, "1": 1}}
    values(broker, topic, ["d"], 1)
    stream.found.clear()
    stream.run(frame)
    assert stream.found == ["d"]


def test_a_stream_begins_at_the_end_unless_told_otherwise(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    values(broker, topic, ["old"])
    query = stream.start(reading(spark.readStream, broker, topic), processingTime="100 milliseconds")
    try:
        wait_until(lambda: query.lastProgress is not None, 60)
        values(broker, topic, ["new"])
        wait_until(lambda: stream.found, 60)
    finally:
        query.stop()
    assert stream.found == ["new"]


def test_a_limit_holds_for_each_batch(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker, 2)
    values(broker, topic, map(str, range(30)), 0)
    values(broker, topic, map(str, range(30, 40)), 1)
    frame = reading(spark.readStream, broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=20)
    query = stream.run(frame)
    assert sorted(map(int, stream.found)) == list(range(40))
    rows = [progress["numInputRows"] for progress in query.recentProgress]
    assert [each for each in rows if each] == [20, 20]


def test_once_reads_everything_in_one_batch(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    values(broker, topic, map(str, range(9)))
    frame = reading(spark.readStream, broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=2)
    query = stream.run(frame, once=True)
    assert [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]] == [9]


def test_a_batch_waits_for_enough_rows(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    frame = reading(
        spark.readStream,
        broker,
        topic,
        startingOffsets="earliest",
        minOffsetsPerTrigger=5,
        maxTriggerDelay="10m",
    )
    query = stream.start(frame, processingTime="50 milliseconds")
    try:
        values(broker, topic, "abc")
        seen = len(query.recentProgress)
        wait_until(lambda: len(query.recentProgress) > seen or query.status["message"], 60)
        assert stream.found == []
        values(broker, topic, "de")
        wait_until(lambda: len(stream.found) == 5, 60)
    finally:
        query.stop()


def test_new_partitions_and_topics_are_found(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    values(broker, topic, ["a"])
    frame = reading(spark.readStream, broker, subscribePattern=f"{topic}.*", startingOffsets="earliest")
    stream.run(frame)
    broker.create_topic(f"{topic}-more", partitions=2)
    values(broker, f"{topic}-more", ["b"], 1)
    stream.run(frame)
    assert stream.found == ["a", "b"]


def test_a_topic_that_was_created_again_is_noticed(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    values(broker, topic, "abc")
    stream.run(reading(spark.readStream, broker, topic, startingOffsets="earliest"))
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=1)
    values(broker, topic, ["z"])
    frame = reading(spark.readStream, broker, topic, startingOffsets="earliest")
    with pytest.raises(Exception, match=f"{topic}-0 was read up to offset 3 and now ends at 1"):
        stream.run(frame)


def test_how_far_a_query_is_behind_is_reported(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    values(broker, topic, "abcd")
    frame = reading(spark.readStream, broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
    query = stream.run(frame)
    first = query.recentProgress[0]
    assert json.loads(first["sources"][0]["latestOffset"]) == {
        topic: {"0": 4},
        "offsets behind latest": {
            "minOffsetsBehindLatest": 1,
            "avgOffsetsBehindLatest": 1.0,
            "maxOffsetsBehindLatest": 1,
        },
    }
    assert behind_latest(first) == (1, 1.0, 1) and behind_latest(query.lastProgress) == (0, 0.0, 0)


def test_offsets_that_are_gone_are_named_or_skipped(spark: Any, broker: Broker, stream: Stream) -> None:
    topic = new_topic(broker)
    values(broker, topic, "abcdef")
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 2}
    stream.run(reading(spark.readStream, broker, topic, **options))
    values(broker, topic, "ghijk")
    delete_before(broker, topic, 9)
    stream.found.clear()
    with pytest.raises(Exception, match=f"offsets 6 to 7 of {topic}-0 are gone: the log starts at 9"):
        stream.run(reading(spark.readStream, broker, topic, **options))
    stream.run(reading(spark.readStream, broker, topic, failOnDataLoss="false", **options))
    assert stream.found == ["j", "k"]


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    """As retention would."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    [deleted] = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    assert deleted.result(30).low_watermark == offset

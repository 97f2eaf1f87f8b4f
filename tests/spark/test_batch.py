"""Batch queries: what is in a topic is in the frame, from where to where the options say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.testing import spark_connector
from barnabas.testing.broker import Broker
from broker.conversation import Conversation, produce
from poisoned_batches import UNCOMPRESSED

from .topics import fill, new_topic, reading, texts, values


def test_the_columns_are_those_of_sparks_own_connector(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 2)
    rows = [
        {"key": "k", "value": "v", "partition": 1, "timestamp": 5_000, "headers": [("h", b"1"), ("h", None)]},
        {"key": None, "value": None, "partition": 1, "timestamp": 6_000},
    ]
    fill(broker, topic, rows)
    frame = reading(spark.read, broker, topic, includeHeaders="true")
    assert [(each.name, each.dataType.simpleString()) for each in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    first, second = frame.orderBy("offset").collect()
    assert (bytes(first.key), bytes(first.value), first.topic) == (b"k", b"v", topic)
    assert (first.partition, first.offset, first.timestampType) == (1, 0, 0)
    assert first.timestamp.timestamp() == 5
    assert [(h.key, h.value and bytes(h.value)) for h in first.headers] == [("h", b"1"), ("h", None)]
    assert (second.key, second.value, second.headers) == (None, None, None)


def test_only_the_columns_that_are_asked_for_are_read(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    values(broker, topic, ["a", "b"])
    frame = reading(spark.read, broker, topic, columns="offset, value")
    assert frame.columns == ["offset", "value"]
    assert [(row.offset, bytes(row.value)) for row in frame.orderBy("offset").collect()] == [
        (0, b"a"),
        (1, b"b"),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read(spark: Any, broker: Broker, codec: str) -> None:
    topic = new_topic(broker, 2)
    rows = [{"value": f"{codec}-{n}", "key": str(n)} for n in range(500)]
    fill(broker, topic, rows, **{"compression.type": codec})
    assert texts(reading(spark.read, broker, topic)) == sorted(row["value"] for row in rows)


def test_several_topics_a_pattern_and_an_assignment(spark: Any, broker: Broker) -> None:
    first, second = new_topic(broker, 2), new_topic(broker, 1)
    values(broker, first, ["a"], 0)
    values(broker, first, ["b"], 1)
    values(broker, second, ["c"])
    assert texts(reading(spark.read, broker, f"{first}, {second}")) == ["a", "b", "c"]
    assert texts(reading(spark.read, broker, subscribePattern=f"{first}|{second}")) == ["a", "b", "c"]
    assert texts(reading(spark.read, broker, subscribePattern="nothing-.*")) == []
    assert texts(reading(spark.read, broker, assign=json.dumps({first: [1], second: [0]}))) == ["b", "c"]


def test_from_offset_to_offset(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 2)
    values(broker, topic, "abcdef", 0)
    values(broker, topic, "xyz", 1)
    frame = reading(
        spark.read,
        broker,
        topic,
        startingOffsets=json.dumps({topic: {"0": 2, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 4, "1": -1}}),
    )
    assert texts(frame) == ["c", "d", "x", "y", "z"]


def test_from_time_to_time(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 2)
    for partition in (0, 1):
        rows = [
            {"value": f"{partition}-{t}", "partition": partition, "timestamp": t} for t in (1000, 2000, 3000)
        ]
        fill(broker, topic, rows)
    assert texts(reading(spark.read, broker, topic, startingTimestamp=2000)) == [
        "0-2000", "0-3000", "1-2000", "1-3000",
    ]  # fmt: skip
    by_partition = reading(
        spark.read,
        broker,
        topic,
        startingOffsetsByTimestamp=json.dumps({topic: {"0": 3000, "1": 1500}}),
        endingOffsetsByTimestamp=json.dumps({topic: {"0": 9000, "1": 3000}}),
    )
    assert texts(by_partition) == ["0-3000", "1-2000"]
    late = {"startingTimestamp": 9000}
    with pytest.raises(Exception, match="no record with a timestamp of 9000 or later"):
        reading(spark.read, broker, topic, **late).count()
    assert (
        reading(spark.read, broker, topic, startingOffsetsByTimestampStrategy="latest", **late).count() == 0
    )


def test_ranges_are_shared_among_tasks(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 2)
    values(broker, topic, map(str, range(100)), 0)
    frame = reading(spark.read, broker, topic, minPartitions=4)
    assert frame.rdd.getNumPartitions() == 4 and frame.count() == 100
    frame = reading(spark.read, broker, topic, maxRecordsPerPartition=30)
    assert frame.rdd.getNumPartitions() == 4 and frame.count() == 100


def test_an_empty_topic_is_an_empty_frame(spark: Any, broker: Broker) -> None:
    assert reading(spark.read, broker, new_topic(broker, 3)).count() == 0


def test_records_larger_than_a_fetch(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    fill(broker, topic, [{"value": "x" * 900_000}, {"value": "y"}, {"value": "z" * 700_000}])
    frame = reading(spark.read, broker, topic, kafka__fetch__max__bytes=1000)
    sizes = [row.n for row in frame.orderBy("offset").selectExpr("length(value) n").collect()]
    assert sizes == [900_000, 1, 700_000]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": '{"TOPIC": {"0": 5}}'}, "has offset 5 for TOPIC-0, which has offsets 0 to 2"),
        ({"startingOffsets": '{"TOPIC": {"0": 0, "7": 0}}'}, "TOPIC-7 is not read by this query"),
        ({"startingOffsets": '{"other": {"0": 0}}'}, "TOPIC-0 is missing"),
    ],
)
def test_offsets_that_do_not_fit_are_named(
    spark: Any, broker: Broker, options: dict[str, str], message: str
) -> None:
    topic = new_topic(broker)
    values(broker, topic, "ab")
    given = {name: value.replace("TOPIC", topic) for name, value in options.items()}
    with pytest.raises(Exception, match=message.replace("TOPIC", topic)):
        reading(spark.read, broker, topic, **given).count()


def test_what_is_not_there_is_named(spark: Any, broker: Broker) -> None:
    with pytest.raises(Exception, match="the option subscribe names topic nobody: there is no such topic"):
        reading(spark.read, broker, "nobody").count()
    with pytest.raises(
        Exception,
        match=r"option kafka\.bootstrap\.servers: cannot connect to 127\.0\.0\.1:1: connection refused",
    ):
        spark.read.format("barnabas").option("kafka.bootstrap.servers", "127.0.0.1:1").option(
            "subscribe", "t"
        ).option("fetchOffset.numRetries", "0").load().count()
    with pytest.raises(Exception, match="there is no option 'subscripe': did you mean subscribe"):
        reading(spark.read, broker, subscripe="t")


def test_only_what_was_committed_is_read(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for value, commits in (("first", True), ("never", False), ("last", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)
    frame = reading(spark.read, broker, topic, kafka__isolation__level="read_committed")
    assert texts(frame) == ["first", "last"]
    assert texts(reading(spark.read, broker, topic)) == ["first", "last", "never"]


def test_settings_of_clients_are_passed_on(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker)
    values(broker, topic, "ab")
    settings = {
        "kafka__client__id": "me",
        "kafka__group__id": "not-joined",
        "kafka__client__rack": "r1",
        "kafka__request__timeout__ms": "20000",
        "kafka__max__partition__fetch__bytes": "100",
        "kafka__check__crcs": "false",
        "kafka__some__setting": "that nobody knows",
        "groupIdPrefix": "mine",
    }
    assert texts(reading(spark.read, broker, topic, **settings)) == ["a", "b"]


def test_a_broker_that_restarts_is_waited_for(spark: Any, tmp_path: Path) -> None:
    with Broker(tmp_path / "data", in_process=False) as own:
        topic = new_topic(own, 2)
        values(own, topic, map(str, range(100)), 0)
        frame = reading(spark.read, own, topic, columns="value")
        assert frame.count() == 100  # connections are kept by the workers from here on
        own.stop()
        own.start()
        assert frame.count() == 100


def test_sparks_own_connector_shows_the_same_rows(spark: Any, broker: Broker) -> None:
    missing = spark_connector.available()
    if missing:
        pytest.skip(missing)
    topic = new_topic(broker, 2)
    rows = [
        {"key": None if n % 3 else str(n), "value": f"v{n}", "timestamp": 1000 + n, "partition": n % 2,
         "headers": [("h", str(n))] if n % 2 else []}
        for n in range(50)
    ]  # fmt: skip
    fill(broker, topic, rows)
    frames = [
        spark.read.format(name)
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("startingOffsets", json.dumps({topic: {"0": 3, "1": -2}}))
        .load()
        for name in ("barnabas", "kafka")
    ]
    ours, theirs = (frame.orderBy("partition", "offset").collect() for frame in frames)
    assert len(ours) == 47 and ours == theirs
    assert [each.dataType for each in frames[0].schema] == [each.dataType for each in frames[1].schema]


def test_a_batch_that_cannot_be_read_is_named_or_skipped(spark: Any, broker: Broker) -> None:
    """Garbage behind a right checksum, from a time when nobody looked."""
    topic = new_topic(broker, 1, {"barnabas.produce.validation": "none"})
    values(broker, topic, ["a", "b"])
    with Conversation(broker) as talk:
        for poison in (UNCOMPRESSED["text instead of a record"], UNCOMPRESSED["a null header key"]):
            answer = talk.ask(*produce(topic, poison))
            assert answer.responses[0].partition_responses[0].error_code == 0
    values(broker, topic, ["c"])
    with pytest.raises(Exception, match=f"the batch at offset 2 of {topic}-0 cannot be read"):
        reading(spark.read, broker, topic, includeHeaders="true").collect()
    kept = reading(spark.read, broker, topic, includeHeaders="true", failOnCorruptRecords="false")
    assert texts(kept) == ["a", "b", "c"]

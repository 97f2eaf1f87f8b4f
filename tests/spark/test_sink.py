"""Writing: rows become records, keys land where other clients put them, exactly once when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from barnabas.client.partitioner import partition_for_key
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.sink import Work, write_rows
from barnabas.spark.sink_options import sink_options
from barnabas.spark.source import BarnabasSource
from barnabas.testing.broker import Broker

from .topics import consumed, new_topic, reading, values


def writing(frame: Any, broker: Broker, topic: str | None = None, **options: Any) -> Any:
    writer = frame.write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    if topic is not None:
        writer = writer.option("topic", topic)
    for name, value in options.items():
        writer = writer.option(name.replace("__", "."), str(value))
    return writer.mode("append")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_are_read_back_by_other_clients(spark: Any, broker: Broker, codec: str) -> None:
    topic = new_topic(broker, 3)
    frame = spark.range(1000).selectExpr("cast(id as string) key", "concat('value ', id) value")
    writing(frame, broker, topic, compression=codec).save()
    found = consumed(broker, topic, 3)
    assert {each.key(): each.value() for each in found} == {
        str(n).encode(): f"value {n}".encode() for n in range(1000)
    }
    assert all(each.partition() == partition_for_key(each.key(), 3) for each in found)


def test_every_column_is_written(spark: Any, broker: Broker) -> None:
    first, second = new_topic(broker, 4), new_topic(broker, 1)
    header = "named_struct('key', 'h', 'value', binary('x'))"
    frame = spark.sql(
        f"""select * from values
        (binary('k1'), 'v1', '{first}', 3, timestamp_millis(5000), array({header})),
        (null, null, '{second}', null, timestamp_millis(6000), null)
        as t(key, value, topic, partition, timestamp, headers)"""
    ).selectExpr("key", "value", "topic", "partition", "timestamp", "headers")
    writing(frame, broker).save()
    [one], [other] = consumed(broker, first, 4), consumed(broker, second)
    assert (one.key(), one.value(), one.partition(), one.timestamp()[1]) == (b"k1", b"v1", 3, 5000)
    assert one.headers() == [("h", b"x")]
    assert (other.key(), other.value(), other.timestamp()[1], other.headers()) == (None, None, 6000, None)


def test_rows_of_a_topic_are_written_to_another_as_with_sparks_own_connector(
    spark: Any, broker: Broker
) -> None:
    """The option `topic` overrides the column, and columns that are no part of a record are left out."""
    source, target = new_topic(broker, 1), new_topic(broker, 1)
    values(broker, source, ["one", "two"])
    copy = reading(spark.read, broker, source).selectExpr("*", "1 AS more")
    writing(copy, broker, target, kafka__acks="1").save()
    assert [each.value() for each in consumed(broker, target)] == [b"one", b"two"]
    assert len(consumed(broker, source)) == 2


def test_the_modes_that_topics_do_not_have_are_named(spark: Any, broker: Broker) -> None:
    frame = spark.sql("select 'v' value")
    for mode in ("overwrite", "error", "ignore"):
        with pytest.raises(Exception, match=r"(?i)append"):
            writing(frame, broker, new_topic(broker)).mode(mode).save()


def test_rows_without_keys_are_spread(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 3)
    frame = spark.range(20_000).selectExpr("concat('a value of some length ', id) value")
    writing(frame, broker, topic, batchBytes=2000).save()
    found = consumed(broker, topic, 3)
    assert len(found) == 20_000 and {each.partition() for each in found} == {0, 1, 2}


def test_batches_that_are_too_large_are_cut(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 1, configs={"max.message.bytes": "2000"})
    frame = spark.range(500).selectExpr("'k' key", "concat(id, repeat('x', 50)) value").coalesce(1)
    writing(frame, broker, topic, batchBytes=100_000).save()
    assert [int(each.value().rstrip(b"x")) for each in consumed(broker, topic)] == list(range(500))


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["'k' key"], {"topic": "t"}, "a column named value is needed"),
        (["'v' value"], {}, "the option topic is missing"),
        (["1 value"], {"topic": "t"}, "the column value is of type int, it must be string or binary"),
        (["'v' value"], {"topic": "t", "compression": "rar"}, "the option compression is 'rar'"),
        (["'v' value"], {"topic": "t", "kafka__acks": "2"}, "kafka.acks is '2'"),
        (["'v' value"], {"topic": "t", "exactlyOnce": "yes"}, "exactlyOnce is 'yes'"),
        (["'v' value"], {"topic": "t", "topics": "t"}, "there is no option 'topics': did you mean topic"),
    ],
)
def test_mistakes_are_named(
    spark: Any, broker: Broker, columns: list[str], options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        writing(spark.range(1).selectExpr(*columns), broker, **options).save()


def test_columns_that_are_no_part_of_a_record_are_left_out(broker: Broker) -> None:
    topic, other = new_topic(broker), new_topic(broker)
    kafka = {"kafka.bootstrap.servers": broker.bootstrap, "kafka.acks": "1"}
    rows = StructType([StructField(name, StringType()) for name in ("value", "topic", "timestamp", "more")])
    options = sink_options({**kafka, "topic": topic}, rows)
    row = {"value": "first", "topic": other, "timestamp": "yesterday", "more": "x"}
    assert write_rows(options, iter([pa.RecordBatch.from_pylist([row])]), None).rows == 1
    assert [each.value() for each in consumed(broker, topic)] == [b"first"]
    assert consumed(broker, other) == []


def test_a_topic_that_does_not_exist_is_created_where_the_cluster_does_so(broker: Broker) -> None:
    kafka = {"kafka.bootstrap.servers": broker.bootstrap}
    rows = StructType([StructField("value", BinaryType())])
    options = sink_options({**kafka, "topic": f"made-for-{new_topic(broker, 1)}"}, rows)
    written = write_rows(options, iter([pa.RecordBatch.from_pylist([{"value": b"first"}])]), None)
    assert options.topic is not None and written.rows == 1
    assert [each.value() for each in consumed(broker, options.topic)] == [b"first"]


def test_a_target_that_is_not_there_is_named_before_anything_is_written() -> None:
    kafka = {"kafka.delivery.timeout.ms": "100"}
    rows = StructType([StructField("value", StringType())])
    with Broker(overrides={"auto.create.topics.enable": "false"}) as broker:
        kafka["kafka.bootstrap.servers"] = broker.bootstrap
        with pytest.raises(OptionError, match="the option topic names nobody: there is no such topic"):
            BarnabasSource({**kafka, "topic": "nobody"}).writer(rows, False)
    kafka["kafka.bootstrap.servers"] = "127.0.0.1:1"
    with pytest.raises(OptionError, match=r"the option kafka\.bootstrap\.servers: cannot connect to"):
        BarnabasSource({**kafka, "topic": "nobody"}).writer(rows, False)


def test_a_row_that_cannot_be_written_is_named(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 1, configs={"max.message.bytes": "1000"})
    frame = spark.sql("select 'large' key, repeat('x', 5000) value")
    with pytest.raises(Exception, match=f"the row with key b'large' cannot be written to {topic}-0"):
        writing(frame, broker, topic).save()
    frame = spark.sql("select 'k' key, 'v' value, 7 partition")
    with pytest.raises(Exception, match=f"names partition 7, topic {topic} has 1"):
        writing(frame, broker, topic).save()


def test_a_task_that_fails_leaves_nothing_in_a_transaction(spark: Any, broker: Broker) -> None:
    topic = new_topic(broker, 1, configs={"max.message.bytes": "1000"})
    frame = spark.sql("select 'k' key, if(id = 900, repeat('x', 5000), 'v') value from range(1000)").coalesce(
        1
    )
    with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
        writing(frame, broker, topic, exactlyOnce="true").save()
    writing(spark.sql("select 'k' key, 'good' value"), broker, topic, exactlyOnce="true").save()
    assert [each.value() for each in consumed(broker, topic)] == [b"good"]


def test_a_batch_that_is_repeated_is_not_written_again(spark: Any, broker: Broker, tmp_path: Path) -> None:
    source, target = new_topic(broker, 2), new_topic(broker, 2)
    values(broker, source, map(str, range(50)), 0)
    values(broker, source, map(str, range(50, 100)), 1)
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        frame = reading(spark.readStream, broker, source, startingOffsets="earliest")
        writer = frame.select("key", "value").writeStream.format("barnabas")
        for name, value in {
            "kafka.bootstrap.servers": broker.bootstrap,
            "topic": target,
            "exactlyOnce": "true",
            "checkpointLocation": str(checkpoint),
        }.items():
            writer = writer.option(name, value)
        assert writer.trigger(availableNow=True).start().awaitTermination(100)

    run()
    # As if the driver had died after the tasks and before it wrote down that the batch is done.
    commits = sorted((checkpoint / "commits").glob("[0-9]*"))
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink(missing_ok=True)
    run()
    assert sorted(int(each.value()) for each in consumed(broker, target, 2)) == list(range(100))


def test_a_task_that_gets_its_rows_in_another_order_does_not_write_them_again(broker: Broker) -> None:
    import pyarrow as pa

    first, second = new_topic(broker, 1), new_topic(broker, 1)
    schema = StructType([StructField(name, StringType()) for name in ("topic", "value")])
    options = sink_options({"kafka.bootstrap.servers": broker.bootstrap, "exactlyOnce": "true"}, schema)

    def attempt(batch: int, rows: list[tuple[str, str]]) -> tuple[int, bool]:
        columns = [list(column) for column in zip(*rows, strict=True)]
        done = write_rows(
            options, iter([pa.record_batch(columns, ["topic", "value"])]), Work(f"of {first}", batch, 0)
        )
        return done.rows, done.was_there

    rows = [(first, "a"), (second, "b")]
    assert attempt(1, rows) == (2, False)
    assert attempt(1, rows[::-1]) == (2, True)
    assert attempt(2, [(second, "c")]) == (1, False)
    assert attempt(2, [(first, "x"), (second, "c")]) == (2, True)
    assert attempt(1, rows) == (2, True)
    assert [each.value() for each in consumed(broker, first)] == [b"a"]
    assert [each.value() for each in consumed(broker, second)] == [b"b", b"c"]

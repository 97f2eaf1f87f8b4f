"""The source and the sink count for the audit: each row once, however often a task runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from audit.counted import counts, ledger_of, report_of, row_of
from barnabas.audit import PRODUCER, consumer
from barnabas.audit.lake.topics import audited
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.interceptors import interceptors_of

T0 = 1_700_000_400_000
ROWS = 300
_numbers = itertools.count(1)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def topic(broker: Any) -> str:
    name = f"counted-{next(_numbers)}"
    broker.create_topic(name, 3)
    return name


def write(spark: Any, broker: Any, topic: str, **options: str) -> None:
    """300 rows in two tasks, of two buckets."""
    rows = spark.range(0, ROWS, 1, 2).selectExpr(
        "cast(id as string) as key",
        "cast(id as string) as value",
        f"timestamp_millis({T0} + (id % 2) * 600000) as timestamp",
    )
    target = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, **options}
    rows.write.format("barnabas").options(**target, **audited(sums="true")).mode("append").save()


def read(spark: Any, broker: Any, topic: str, tier: str, columns: str = "*", **settings: str) -> Any:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    return (
        spark.read.format("barnabas").options(**options, **audited(tier, **settings)).load().select(columns)
    )


def test_rows_that_are_written_and_read_are_counted_once(spark: Any, broker: Any, topic: str) -> None:
    write(spark, broker, topic, exactlyOnce="true")
    assert counts(broker.bootstrap, topic, PRODUCER) == {T0: 150, T0 + 600_000: 150}

    tier = consumer("revenue")
    for _ in range(2):  # a second time, the same offsets
        assert read(spark, broker, topic, tier, "value").count() == ROWS
    assert counts(broker.bootstrap, topic, tier) == {T0: 150, T0 + 600_000: 150}
    row = row_of(report_of(broker.bootstrap), topic, tier)
    assert (row["expected"], row["seen"], row["missing"], row["extra"]) == (150, 150, 0, 0)


def test_sums_of_contents_are_the_same_where_rows_are_written_and_read(
    spark: Any, broker: Any, topic: str
) -> None:
    """The query asks for the value alone: the audit sees keys too."""
    write(spark, broker, topic)
    assert read(spark, broker, topic, consumer("sums"), "value", sums="true").count() == ROWS
    columns = ledger_of(broker.bootstrap).columns
    for bucket in (T0, T0 + 600_000):
        written, seen = (columns[topic, bucket][tier].total for tier in (PRODUCER, consumer("sums")))
        assert written.summed == 150 and written == seen


def test_rows_that_a_transaction_lost_are_not_counted(spark: Any, broker: Any, topic: str) -> None:
    """The row that names a partition beyond the topic's fails its task behind rows that were sent."""
    rows = spark.range(0, 10, 1, 1).selectExpr(
        "cast(id as string) as value", "cast(if(id = 9, 7, 0) as int) as partition"
    )
    target = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "exactlyOnce": "true"}
    with pytest.raises(Exception, match="partition 7"):
        rows.write.format("barnabas").options(**target, **audited()).mode("append").save()
    assert counts(broker.bootstrap, topic, PRODUCER) == {}


@pytest.mark.long
def test_a_query_that_starts_again_counts_on(spark: Any, broker: Any, topic: str, tmp_path: Path) -> None:
    """Each start reads what is new, and one batch is run a second time without its checkpoint's commit."""
    tier = consumer("lines")
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "50",
    }
    for times in (1, 2):
        write(spark, broker, topic)
        frame = spark.readStream.format("barnabas").options(**options, **audited(tier)).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        assert sum(counts(broker.bootstrap, topic, tier).values()) == ROWS * times
        newest = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        newest.unlink()  # as after a crash between the batch and its commit
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def test_wrong_interceptors_are_named() -> None:
    with pytest.raises(OptionError, match=r"no\.such\.Class, which cannot be imported"):
        interceptors_of({"interceptors": "no.such.Class"})
    with pytest.raises(OptionError, match=r"interceptor\.tier needs the option interceptors"):
        interceptors_of({"interceptor.tier": "producer"})
    from barnabas.spark.basics.settings import client_settings

    client = client_settings({"kafka.bootstrap.servers": "localhost:1"})
    for settings, message in (
        ({"tier": ""}, r"interceptor\.tier is missing"),
        ({"tier": "producer", "bucket.ms": "7"}, "a divisor of a day"),
        ({"tier": "producer", "bucket": "7"}, r"there is no setting interceptor\.bucket"),
    ):
        options = audited() | {f"interceptor.{name}": value for name, value in settings.items()}
        with pytest.raises(OptionError, match=message):
            interceptors_of(options).make(client)

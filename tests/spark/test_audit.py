"""Two topics compared record by record on Spark: the first differences, with their coordinates."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import time
from typing import Any

import pytest

from barnabas.audit.deep.compare import Aspects
from barnabas.audit.deep.difference import Comparison, Kind
from barnabas.audit.deep.verify import TopicAddress, verify
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.producer import Producer

T0 = 1_700_000_400_000
_numbers = itertools.count(1)
Row = tuple[bytes | None, bytes | None]  # key, value

pytestmark = pytest.mark.timeout(300)  # Spark takes its time on a machine that is busy


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that nobody used."""
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:90]
    return f"{stem}-{next(_numbers)}"


def write(broker: str, topic: str, rows: list[Row], partitions: int, **others: Any) -> TopicAddress:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.topics import NewTopic

    async def send() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await Admin(cluster).create_topic(NewTopic(topic, partitions, 1))
            async with Producer(cluster) as producer:
                for number, (key, value) in enumerate(rows):
                    place = None if key is not None else number % partitions
                    await producer.send(topic, value, key, partition=place, **{"timestamp_ms": T0, **others})

    asyncio.run(send())
    return TopicAddress(broker, topic)


def found(comparison: Comparison) -> list[tuple[Kind, bytes | None]]:
    return sorted(((each.kind, each.key) for each in comparison.differences), key=str)


ROWS: list[Row] = [(b"key-%d" % (number % 40), b"value-%d" % number) for number in range(400)]
KEYLESS: list[Row] = [(None, b"same"), (None, b"same"), (None, b"other"), (b"", b"empty"), (b"key-1", None)]


def test_copies_with_other_partitions_are_equal_and_each_damage_is_named(
    spark: Any, broker: Any, topic: str
) -> None:
    """The copy has another number of partitions, so that all offsets differ."""
    bootstrap = broker.bootstrap
    source = write(bootstrap, f"{topic}-source", ROWS + KEYLESS, 3)
    same = write(bootstrap, f"{topic}-same", KEYLESS[::-1][:1] + ROWS[:0] + ROWS + KEYLESS[:4], 2)
    equal = verify(spark, source, same, Aspects(order=False))
    assert equal.is_equal and equal.source_records == equal.target_records == 405
    damaged = list(ROWS + KEYLESS)
    damaged[100] = (damaged[100][0], b"changed")  # key-20
    damaged.append((b"key-7", b"value-7"))  # a second time
    del damaged[401]  # one of two equal records without a key
    damaged[3], damaged[43] = damaged[43], damaged[3]  # two records of key-3
    lost = damaged.pop(205)  # of key-5
    target = write(bootstrap, f"{topic}-target", damaged, 2)
    result = verify(spark, source, target, Aspects())
    assert not result.is_equal
    assert (result.source_records, result.target_records) == (405, 404)
    assert result.counts == {"changed": 1, "extra": 1, "missing": 2, "order": 1}
    kinds = dict(found(result)) if len({kind for kind, _ in found(result)}) == 4 else {}
    assert (
        kinds[Kind.CHANGED] == b"key-20" and kinds[Kind.EXTRA] == b"key-7" and kinds[Kind.ORDER] == b"key-3"
    )
    assert {key for kind, key in found(result) if kind is Kind.MISSING} == {None, lost[0]}
    for each in result.differences:
        assert (each.source is None) == (each.kind is Kind.EXTRA)
        assert (each.target is None) == (each.kind is Kind.MISSING)


def test_headers_and_timestamps_count_only_when_they_are_asked_for(
    spark: Any, broker: Any, topic: str
) -> None:
    rows: list[Row] = [(b"a", b"1"), (b"b", b"2")]
    source = write(broker.bootstrap, f"{topic}-source", rows, 1, headers=(("h", b"1"),))
    target = write(broker.bootstrap, f"{topic}-target", rows, 1, headers=(("h", b"2"),), timestamp_ms=T0 + 1)
    assert verify(spark, source, target, Aspects()).is_equal
    for aspects in (Aspects(headers=True), Aspects(timestamps=True)):
        result = verify(spark, source, target, aspects)
        assert result.counts == {"changed": 2}
        part = "headers" if aspects.headers else "timestamp"
        assert {each.parts for each in result.differences} == {(part,)}
        assert str(result.differences[0]) == f"changed {part}: key b'a', source at 0:0, target at 0:0"


def test_copies_that_are_compacted_to_different_degrees_are_equal_in_their_latest_records(
    spark: Any, broker: Any, topic: str
) -> None:
    whole: list[Row] = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"c", None), (b"d", b"")]
    source = write(broker.bootstrap, f"{topic}-source", whole, 1)
    target = write(broker.bootstrap, f"{topic}-target", [(b"b", b"1"), (b"a", b"2"), (b"d", b"")], 2)
    assert verify(spark, source, target, Aspects(latest=True)).is_equal
    assert not verify(spark, source, target, Aspects()).is_equal
    other = write(broker.bootstrap, f"{topic}-other", [(b"b", b"1"), (b"a", b"1"), (b"c", b"1")], 1)
    result = verify(spark, source, other, Aspects(latest=True))
    assert found(result) == [(Kind.CHANGED, b"a"), (Kind.EXTRA, b"c"), (Kind.MISSING, b"d")]


def test_records_without_keys_are_compared_by_many_tasks(spark: Any, broker: Any, topic: str) -> None:
    """None of them has a number in its key, so no task sorts all of them."""
    rows: list[Row] = [(None, b"%d" % (number % 50)) for number in range(500)]
    source = write(broker.bootstrap, f"{topic}-source", rows, 3)
    target = write(broker.bootstrap, f"{topic}-target", rows[::-1][1:], 2)
    result = verify(spark, source, target, Aspects())
    assert result.counts == {"missing": 1} and result.differences[0].key is None
    assert verify(spark, source, source, Aspects()).is_equal


def test_the_order_of_a_key_is_compared_unless_it_is_not_wanted(spark: Any, broker: Any, topic: str) -> None:
    rows = list(ROWS)
    random.Random(1).shuffle(rows)
    source = write(broker.bootstrap, f"{topic}-source", ROWS, 2)
    target = write(broker.bootstrap, f"{topic}-target", rows, 2)
    assert verify(spark, source, target, Aspects(order=False)).is_equal
    result = verify(spark, source, target, Aspects(), limit=3)
    assert set(result.counts) == {"order"} and len(result.differences) == 3


@pytest.mark.long
def test_a_topic_of_apache_kafka_is_compared_with_its_copy(
    spark: Any, broker: Any, topic: str, apache_kafka: Any
) -> None:
    source = write(apache_kafka.bootstrap, topic, ROWS, 3)
    target = write(broker.bootstrap, topic, ROWS[:-1], 2)
    result = verify(spark, source, target, Aspects())
    assert result.counts == {"missing": 1} and result.differences[0].key == ROWS[-1][0]


@pytest.mark.long
def test_the_command_prints_differences_and_its_status_tells(
    broker: Any, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import subprocess
    import sys

    source = write(broker.bootstrap, f"{topic}-source", ROWS, 2)
    write(broker.bootstrap, f"{topic}-target", ROWS[1:], 2)
    command = [sys.executable, "-m", "barnabas.cli.main", "audit", "verify", "--spark", "local[2]"]
    ended = subprocess.run(
        [*command, f"{source.bootstrap}/{source.topic}", f"{source.bootstrap}/{topic}-target"],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 1, ended.stderr
    assert "400 records in" in ended.stdout and "1 missing" in ended.stdout
    assert "missing: key b'key-0', source at" in ended.stdout
    ended = subprocess.run(
        [*command, f"{source.bootstrap}/{source.topic}", f"{source.bootstrap}/{source.topic}"],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0 and "equal: the digests of all 256" in ended.stdout


def test_spark_sums_up_the_audit_topic_as_one_process_does(spark: Any, broker: Any, topic: str) -> None:
    from barnabas.audit import PRODUCER, AuditCounter, AuditSettings, consumer
    from barnabas.audit.core.report import Rules, make_report
    from barnabas.audit.lake.sums import sum_up

    audit_topic = f"audit-{topic}"
    settings = AuditSettings(broker.bootstrap, topic=audit_topic)
    for number in range(3):
        with AuditCounter(settings, PRODUCER) as counter:
            for each in range(10):
                counter.count(topic, T0 + each, number)
    with AuditCounter(settings, consumer("g")) as counter:
        counter.count(topic, T0, 0, count=10)
        counter.count(topic, T0, 1, count=9)
        counter.count(topic, T0, 2, count=11)
    ledger = sum_up(spark, broker.bootstrap, audit_topic, groups=3)
    (row,) = make_report(ledger, Rules(), int(time.time() * 1000) + 86_400_000).alarms
    assert (row.tier, row.verdict.missing, row.verdict.extra) == (consumer("g"), 1, 1)
    assert row.verdict.partitions == (1, 2) and row.verdict.expected == 30
    assert len(ledger.sessions) == 4 and all(each.is_closed for each in ledger.sessions.values())


def test_batches_of_a_query_are_counted_once_however_often_they_run(
    spark: Any, broker: Any, topic: str
) -> None:
    """What `foreachBatch` does with a batch that is tried again, and a raw zone that is counted twice."""
    from datetime import UTC, datetime

    from barnabas.audit import AuditSettings, zone
    from barnabas.audit.lake.frames import count_batch, count_batches
    from barnabas.audit.lake.sums import sum_up

    settings = AuditSettings(broker.bootstrap, topic=f"audit-{topic}")

    def when(second: int) -> datetime:
        return datetime.fromtimestamp(T0 / 1000 + second, UTC)

    ddl = "topic string, partition int, timestamp timestamp, batch bigint"
    first = [(topic, number % 2, when(number), 1) for number in range(10)]
    second = [(topic, 0, when(600 + number), 2) for number in range(5)] + [("__internal", 0, when(0), 2)]
    raw = zone("shop", "raw")
    frame = spark.createDataFrame(first, ddl)
    assert count_batches(frame, settings, raw, "lake/raw/orders") == 10
    more = spark.createDataFrame(first + second, ddl)
    assert count_batches(more, settings, raw, "lake/raw/orders") == 6
    assert count_batches(more, settings, raw, "lake/raw/orders") == 0
    for _ in range(2):
        count_batch(frame.drop("batch"), 7, settings, "consumer/query", "query-1")
    ledger = sum_up(spark, broker.bootstrap, settings.topic, groups=2)
    found = {
        (tier, bucket): {number: tally.counted for number, tally in (cell.by_partition() or {}).items()}
        for (name, bucket), column in ledger.columns.items()
        for tier, cell in column.items()
        if name == topic
    }
    assert found == {
        (raw, T0): {0: 5, 1: 5}, (raw, T0 + 600_000): {0: 5}, ("consumer/query", T0): {0: 5, 1: 5},
    }  # fmt: skip
    assert not list(ledger.gaps())

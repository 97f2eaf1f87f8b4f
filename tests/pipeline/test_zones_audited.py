"""Zones count their records for the audit: each once, whatever is killed. The report names planted losses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as F

from audit.conftest import COUNTS
from audit.counted import T0, WIDTH, counts, ledger_of, wait_for_counts
from barnabas.audit.cluster.remote_counter import RemoteCounter
from barnabas.audit.core.batch_counts import Opens
from barnabas.audit.core.report import Report, Rules, make_report
from barnabas.audit.core.verdicts import PATIENCE_MS
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.pipeline import Audit, Pipeline, in_range
from barnabas.pipeline.ingest import zone_audit, zone_writer
from barnabas.pipeline.ingest.judging.parsed_batch import ROWS_ON_DRIVER_MAX
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.ingest.zone_writer import ZoneWriter
from barnabas.testing.broker import Broker
from pipeline.orders import order, orders_pipeline

pytestmark = pytest.mark.timeout(300)  # Spark takes its time on a machine that is busy

RAW, STAGING, TRUSTED = (
    "zone/shop/orders/raw",
    "zone/shop/orders/staging.orders",
    "zone/shop/orders/trusted.orders",
)
PARTITIONS = 2
_numbers = iter(range(1_000))

Send = Callable[[list[dict[str, Any]]], None]


@pytest.fixture(scope="module")
def counting() -> Iterator[Broker]:
    """A broker that counts its records ten times a second."""
    with Broker(overrides=COUNTS, in_process=False) as broker:
        yield broker


@pytest.fixture
def topic(counting: Broker) -> str:
    name = f"audited-{next(_numbers)}"
    counting.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def pipeline(counting: Broker, topic: str, lake: str) -> Pipeline:
    rules = [in_range("amount", 0, 500)]
    return orders_pipeline(
        lake, counting.bootstrap, topic, trusted={"rules": rules}, audit=Audit(is_enabled=True)
    )


@pytest.fixture
def send(counting: Broker, topic: str) -> Send:
    """Orders go to the partition and the bucket that their number says: odd ones to partition 1."""
    import json

    producer = Producer({"bootstrap.servers": counting.bootstrap})

    def produce(orders: list[dict[str, Any]]) -> None:
        for each in orders:
            number = int(each["order_id"][1:])
            data = json.dumps(each).encode() if each["shop"] else b"{broken"
            stamp = T0 + (number >= 100) * WIDTH + number
            producer.produce(topic, data, partition=number % PARTITIONS, timestamp=stamp)
        assert producer.flush(30) == 0

    return produce


def report(counting: Broker, topic: str, rules: Rules | None = None) -> Report:
    """What the audit says when the patience after the last count is over, too."""
    now_ms = int(time.time() * 1000) + 2 * PATIENCE_MS
    return make_report(ledger_of(counting.bootstrap), rules or Rules(), now_ms, topic=topic)


def sums(counting: Broker, topic: str, tier: str) -> tuple[int, int]:
    """Records of a tier that are there, and those that are accounted for."""
    columns = ledger_of(counting.bootstrap).columns
    cells = [column[tier].total for (name, _), column in columns.items() if name == topic and tier in column]
    return sum(each.counted for each in cells), sum(each.dropped for each in cells)


def test_each_zone_accounts_for_every_record(
    spark: Any, counting: Broker, topic: str, pipeline: Pipeline, send: Send
) -> None:
    runner = SourceRunner(spark, pipeline, "orders")
    send([order(1), order(2), order(102), order(1), order(3, amount=999.0), order(4, shop="")])
    runner.drain()
    send([order(2), order(105)])
    runner.drain()
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 6, T0 + WIDTH: 2})
    assert counts(counting.bootstrap, topic, RAW) == {T0: 6, T0 + WIDTH: 2}
    # Two repeated keys and a broken record are not in staging; a rule refuses one more in trusted.
    assert sums(counting, topic, STAGING) == (5, 3)
    assert sums(counting, topic, TRUSTED) == (4, 4)
    found = report(counting, topic)
    assert not found.alarms and not found.notes
    compared = {(row.tier, row.references) for row in found.rows}
    assert compared == {("cluster", ()), (RAW, ("cluster",)), (STAGING, (RAW,)), (TRUSTED, (RAW,))}


def test_sums_of_what_raw_holds_are_those_of_the_brokers(
    spark: Any, counting: Broker, topic: str, pipeline: Pipeline, send: Send
) -> None:
    """A counter that opens batches has sums too: here it is one from outside, as another tier."""
    pipeline = replace(pipeline, audit=replace(pipeline.audit, has_sums=True))
    send([order(1), order(2), order(102), order(4, shop="")])
    SourceRunner(spark, pipeline, "orders").drain()
    asyncio.run(count_contents(counting.bootstrap, topic))
    rules = Rules(references={RAW: ("cluster/outside",)})
    columns = ledger_of(counting.bootstrap).columns
    for bucket, number in ((T0, 3), (T0 + WIDTH, 1)):
        raw, outside = (columns[topic, bucket][tier].total for tier in (RAW, "cluster/outside"))
        assert raw.summed == number and raw == outside
    assert not report(counting, topic, rules).alarms


async def count_contents(bootstrap: str, topic: str) -> None:
    addresses = parse_bootstrap(bootstrap)
    async with Cluster(addresses) as counted, Cluster(addresses) as audited:
        counter = RemoteCounter(
            counted, audited, tier="cluster/outside", topics={topic}, opens=Opens.CONTENTS
        )
        await counter.count_all()
        await counter.close()


def test_rows_that_a_zone_loses_or_doubles_are_named_with_zone_topic_bucket_and_partition(
    spark: Any, counting: Broker, topic: str, pipeline: Pipeline, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = zone_writer.zone.write

    def damaged(rows: Any, path: str, *others: Any, **named: Any) -> None:
        """Two rows of partition 1 do not arrive in staging, and one of partition 0 comes three times."""
        if path.endswith("staging/orders"):
            rows = rows.where(~F.col("order_id").isin("o1", "o3"))
            again = rows.where("order_id = 'o102'")
            rows = rows.unionByName(again).unionByName(again)
        written(rows, path, *others, **named)

    monkeypatch.setattr(zone_writer.zone, "write", damaged)
    send([order(number) for number in (1, 2, 3, 5, 102, 103)])
    SourceRunner(spark, pipeline, "orders").drain()
    wait_for_counts(counting.bootstrap, topic, "cluster", {T0: 4, T0 + WIDTH: 2})
    assert [
        (row.tier, row.bucket_ms, row.verdict.missing, row.verdict.extra, row.verdict.partitions)
        for row in report(counting, topic).alarms
    ] == [(STAGING, T0, 2, 0, (1,)), (STAGING, T0 + WIDTH, 0, 2, (0,))]


def test_batches_that_are_finished_after_a_crash_are_counted_once(
    spark: Any, counting: Broker, topic: str, pipeline: Pipeline, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit's brokers are away for two batches, and the process dies in the third one."""

    def dies(*_: Any, **__: Any) -> Any:
        raise OSError("killed")

    runner = SourceRunner(spark, pipeline, "orders")
    with monkeypatch.context() as patch:
        patch.setattr(zone_audit, "send", dies)
        send([order(1), order(2), order(1)])
        runner.drain()
        send([order(1), order(3)])
        runner.drain()
        assert sums(counting, topic, RAW) == (0, 0)
        send([order(2), order(4), order(4)])
        patch.setattr(ZoneWriter, "write", dies)
        with pytest.raises(Exception, match="killed"):
            runner.drain()
    for _ in range(2):  # the second one counts the same batches again
        SourceRunner(spark, pipeline, "orders").drain()
        assert sums(counting, topic, RAW) == (8, 0)
        assert sums(counting, topic, STAGING) == sums(counting, topic, TRUSTED) == (4, 4)
    send([order(5), order(5)])
    SourceRunner(spark, pipeline, "orders").drain()
    assert sums(counting, topic, RAW) == (10, 0) and sums(counting, topic, STAGING) == (5, 5)
    assert not report(counting, topic).alarms


@pytest.mark.long
def test_a_pipeline_that_begins_to_count_counts_what_comes_from_then_on(
    spark: Any, counting: Broker, topic: str, pipeline: Pipeline, send: Send
) -> None:
    send([order(1)])
    SourceRunner(spark, replace(pipeline, audit=Audit()), "orders").drain()
    send([order(2), order(1)])
    SourceRunner(spark, pipeline, "orders").drain()
    assert sums(counting, topic, RAW) == (2, 0) and sums(counting, topic, STAGING) == (1, 1)


@pytest.mark.long
def test_batches_that_executors_judge_are_counted_alike(
    spark: Any, counting: Broker, topic: str, pipeline: Pipeline, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.pipeline.ingest.batch_parser.ROWS_ON_DRIVER_MAX", 1)
    assert ROWS_ON_DRIVER_MAX > 1
    send([order(1), order(2), order(1), order(3, amount=999.0), order(4, shop="")])
    SourceRunner(spark, pipeline, "orders").drain()
    assert sums(counting, topic, RAW) == (5, 0)
    assert (sums(counting, topic, STAGING), sums(counting, topic, TRUSTED)) == ((3, 2), (2, 3))

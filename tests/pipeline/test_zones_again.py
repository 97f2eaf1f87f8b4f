"""Replay, backfill, release and maintenance change only what they cover."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.engine.errors import NeedsDecision
from barnabas.pipeline import Schema, TableName, View, Zone, in_range, refers_to
from barnabas.pipeline.ingest.maintenance import maintain
from barnabas.pipeline.ingest.rewriting.backfill import backfill
from barnabas.pipeline.ingest.rewriting.release import release
from barnabas.pipeline.ingest.rewriting.replay import replay
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.ingest.zone_writer import ZoneWriter
from barnabas.pipeline.spec.source_locks import source_lock
from barnabas.testing.waiting import wait_until
from pipeline.orders import DDL, DOUBLED, order, orders_pipeline, rows

pytestmark = pytest.mark.timeout(300)  # Spark takes its time on a machine that is busy

Topic = Callable[..., str]
Produce = Callable[..., None]
VIEW = View(
    name="revenue", source="trusted.orders", sql="SELECT shop, sum(amount) AS a FROM orders GROUP BY shop",
    keys=["shop"], measures={"a": "sum"},
)  # fmt: skip


def test_quarantined_rows_are_released_after_a_fix(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": [in_range("amount", 0, 10)]})
    produce(name, [order(1), order(20), order(300), order(4, amount="5")])
    SourceRunner(spark, pipeline, "orders").drain()
    assert len(rows(spark, pipeline, "quarantine", "orders", "rule")) == 3
    fixed = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 100)])])
    assert release(spark, fixed, "orders").accepted == 1
    assert rows(spark, fixed, "trusted", "orders", "order_id") == [("o1",), ("o20",)]


@pytest.mark.long
def test_released_rows_reach_refined_tables_and_views_and_batches_are_replayed(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": [in_range("amount", 0, 10)]},
        refined=[DOUBLED], views=[VIEW],
    )  # fmt: skip
    runner = SourceRunner(spark, pipeline, "orders")
    produce(name, [order(1), order(20), order(300), order(4, amount="5")])
    runner.drain()
    produce(name, [order(5), order(6)])
    runner.drain()
    assert len(rows(spark, pipeline, "quarantine", "orders", "rule")) == 3
    # The rule is changed: one of two passes now.
    fixed = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 100)])])
    released = [("o1",), ("o20",), ("o5",), ("o6",)]
    for downstream in ((("doubled",), ("revenue",)), ((), ())):  # a second release changes nothing
        done = release(spark, fixed, "orders")
        assert rows(spark, fixed, "trusted", "orders", "order_id") == released
        assert (done.refined, done.views) == downstream
    assert rows(spark, fixed, "refined", "doubled", "order_id") == [("o20",), ("o5",), ("o6",)]
    waiting = pipeline.lake_location.read(spark, TableName(Zone.QUARANTINE, "orders")).where(
        "released_at IS NULL"
    )
    assert waiting.count() == 2
    # The runner notices the commits of another writer.
    produce(name, [order(20), order(7)])
    [batch] = runner.drain()
    assert (batch.duplicates, batch.accepted) == (1, 1)
    # Replay of the second batch with a rule that refuses one of its rows: the other batches stay.
    strict = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 5)])])
    before = pipeline.lake_location.version(spark, TableName(Zone.STAGING, "orders"))
    done = replay(spark, strict, "orders", 2, 2)
    assert (done.rows_in, done.staged, done.accepted, done.quarantined) == (2, 2, 1, 1)
    assert done.views == ("revenue",)
    left = [("o1",), ("o20",), ("o5",), ("o7",)]
    assert rows(spark, strict, "trusted", "orders", "order_id") == left
    changes = (
        spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", before + 1)
    )
    touched = changes.load(pipeline.lake_location.table_path("staging", "orders")).select("_batch").distinct()
    assert [row[0] for row in touched.collect()] == [2]


@pytest.mark.long
def test_a_mended_record_is_released_and_a_replay_rebuilds_a_table_with_another_type(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": ()})
    runner = SourceRunner(spark, pipeline, "orders")
    produce(name, [order(1), order(4, amount="5")])
    runner.drain()
    # A person fixes a malformed record: a release brings it to staging and trusted.
    mended = json.dumps(order(4, amount=5.0)).replace("'", "")
    spark.sql(
        f"UPDATE {pipeline.lake_location.identifier(TableName(Zone.QUARANTINE, 'orders'))}"
        f" SET value = CAST('{mended}' AS BINARY) WHERE zone = 'staging'"
    )
    done = release(spark, pipeline, "orders", ["malformed"])
    assert (done.rows_in, done.staged, done.accepted) == (1, 1, 1)
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == [("o1",), ("o4",)]
    produce(name, [order(4)])
    [batch] = runner.drain()
    assert (batch.duplicates, batch.accepted) == (1, 0)
    # A column gets another type: a replay rebuilds the table from raw.
    texts = Schema(DDL.replace("amount DOUBLE", "amount STRING"))
    other = replace(pipeline, sources=[replace(pipeline.sources[0], schema=texts)])
    with pytest.raises(NeedsDecision, match=r"trusted\.orders: 1 rows that raw does not bring back"):
        replay(spark, other, "orders", rebuild=True)  # raw has the record as it was before
    done = replay(spark, other, "orders", rebuild=True, confirm=lambda preview: preview.removed == 2)
    assert (done.rows_in, done.staged) == (3, 2)
    assert rows(spark, other, "trusted", "orders", "order_id", "amount")[1] == ("o4", "5")


@pytest.mark.long
def test_a_backfill_reads_what_raw_lacks_and_rewrites_its_time_only(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, source={"starting": "latest"}, trusted={"rules": ()}
    )
    produce(name, [order(1), order(2)])
    runner = SourceRunner(spark, pipeline, "orders")
    assert runner.step() is None  # it begins at the end
    produce(name, [order(2), order(3)])
    runner.drain()
    assert rows(spark, pipeline, "staging", "orders", "order_id") == [("o2",), ("o3",)]
    now = datetime.now(UTC)
    done = backfill(spark, pipeline, "orders", now - timedelta(hours=1), now + timedelta(hours=1))
    assert (done.rows_in, done.staged, done.accepted) == (4, 3, 3)
    assert str(done.changed[0].table) == "raw.orders" and done.changed[0].rows == 2
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == [("o1",), ("o2",), ("o3",)]
    again = backfill(spark, pipeline, "orders", now - timedelta(hours=1), now + timedelta(hours=1))
    assert (again.rows_in, again.staged) == (4, 3) and again.changed[0].table.zone is Zone.STAGING
    assert backfill(spark, pipeline, "orders", now - timedelta(days=2), now - timedelta(days=1)).rows_in == 0
    produce(name, [order(1), order(9)])
    [batch] = runner.drain()
    assert (batch.batch, batch.duplicates, batch.staged) == (2, 1, 1)


@pytest.mark.long
def test_an_interrupted_batch_is_finished_before_a_replay(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": ()}, refined=[DOUBLED])
    runner = SourceRunner(spark, pipeline, "orders")
    produce(name, [order(1), order(2)])
    runner.drain()
    produce(name, [order(3), order(4)])

    def dies(*_: Any, **__: Any) -> Any:
        raise OSError("killed")

    with monkeypatch.context() as patch, pytest.raises(Exception, match="killed"):
        patch.setattr(ZoneWriter, "write", dies)
        runner.step()
    assert len(rows(spark, pipeline, "raw", "orders", "offset")) == 4
    done = replay(spark, pipeline, "orders")
    assert (done.rows_in, done.accepted) == (4, 4)
    produce(name, [order(5)])
    for again in (runner, SourceRunner(spark, pipeline, "orders")):
        again.drain()
    everything = [(f"o{number}",) for number in range(1, 6)]
    assert rows(spark, pipeline, "staging", "orders", "order_id") == everything
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == everything
    assert rows(spark, pipeline, "refined", "doubled", "order_id") == everything[1:]


@pytest.mark.long
def test_an_interrupted_batch_is_finished_with_the_references_that_it_began_with(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(partitions=1)
    rules = [refers_to("shop", "staging.shops.shop")]
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": rules})
    shops = spark.createDataFrame([("a",)], "shop string").write.format("delta")
    shops.save(pipeline.lake_location.table_path("staging", "shops"))
    runner = SourceRunner(spark, pipeline, "orders")
    produce(name, [order(3), order(1)])  # of the shops a and b

    def dies(*_: Any, **__: Any) -> Any:
        raise OSError("killed")

    with monkeypatch.context() as patch, pytest.raises(Exception, match="killed"):
        patch.setattr(ZoneWriter, "_quarantining", lambda *_: dies)  # the table has its row by then
        runner.step()
    shops = spark.createDataFrame([("b",)], "shop string").write.format("delta").mode("append")
    shops.save(pipeline.lake_location.table_path("staging", "shops"))
    produce(name, [order(4)])
    SourceRunner(spark, pipeline, "orders").drain()
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == [("o3",), ("o4",)]
    assert rows(spark, pipeline, "quarantine", "orders", "offset", "rule") == [(1, "reference_shop")]


def is_waited_for(path: Path) -> bool:
    """Whether this process waits for the lock of a file: the kernel lists such a request behind an arrow."""
    inode = str(path.stat().st_ino)
    lines = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any("->" in words and words[-3].endswith(f":{inode}") for words in lines)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux's list of locks")
def test_a_rewrite_waits_for_the_lock_of_the_source(lake: str) -> None:
    pipeline = orders_pipeline(lake, "127.0.0.1:1", "orders")
    holds = (
        "import sys; from pathlib import Path; from barnabas.pipeline.spec.source_locks import locked_file;"
        " locked_file(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    path = Path(lake) / "_barnabas" / "turns" / "orders.lock"
    command = [sys.executable, "-c", holds, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        had = threading.Event()

        def take() -> None:
            with source_lock(pipeline, "orders"), source_lock(pipeline, "orders"):  # in one thread twice
                had.set()

        thread = threading.Thread(target=take)
        thread.start()
        wait_until(lambda: had.is_set() or is_waited_for(path), what="the thread waits for the lock")
        assert not had.is_set()
        other.kill()  # the operating system releases the lock when its holder dies
        thread.join(60)
    assert had.is_set()


@pytest.mark.long
def test_references_are_checked_against_other_tables_and_maintenance_keeps_everything(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": ()}, retention_s={"raw": 3600.0}
    )
    known = replace(pipeline.trusted[0], name="known", rules=[refers_to("shop", "orders.shop")])
    pipeline = replace(pipeline, trusted=[*pipeline.trusted, known])
    runner = SourceRunner(spark, pipeline, "orders")
    for numbers in ([1], [4, 2]):
        produce(name, [order(number) for number in numbers])
        runner.drain()
    assert rows(spark, pipeline, "trusted", "known", "order_id") == [("o4",)]
    assert rows(spark, pipeline, "quarantine", "known", "reason")[0] == (
        "shop is b, which orders.shop does not have",
    )
    before = rows(spark, pipeline, "trusted", "orders", "order_id")
    done = maintain(spark, pipeline)
    assert {each.what for each in done} == {"compact", "vacuum"}
    assert all(each.after < each.before for each in done if each.what == "compact")
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == before
    later = maintain(spark, pipeline, compact=False, vacuum=False, now=datetime.now(UTC) + timedelta(hours=2))
    assert [(str(each.table), each.removed) for each in later] == [("raw.orders", 3)]
    produce(name, [order(4), order(10)])
    [batch] = SourceRunner(spark, pipeline, "orders").drain()
    assert (batch.batch, batch.rows_in, batch.duplicates) == (3, 2, 1)

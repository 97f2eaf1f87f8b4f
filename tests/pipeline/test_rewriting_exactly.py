"""Replay, backfill and release write each row once, whatever raw has forgotten, whenever they are killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.engine.errors import NeedsDecision
from barnabas.pipeline import Pipeline, Schema, TableName, Zone, in_range
from barnabas.pipeline.ingest.maintenance import maintain
from barnabas.pipeline.ingest.rewriting.backfill import backfill
from barnabas.pipeline.ingest.rewriting.release import release
from barnabas.pipeline.ingest.rewriting.replay import replay
from barnabas.pipeline.ingest.rewriting.replay_preview import Preview
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.lake import commits
from pipeline.orders import DDL, DOUBLED, order, orders_pipeline, rows

pytestmark = pytest.mark.timeout(600)  # Spark takes its time on a machine that is busy

Topic = Callable[..., str]
Produce = Callable[..., None]


def forget_raw(spark: Any, pipeline: Pipeline, batch: int) -> None:
    """Remove the batches up to this one from raw, as retention does when their time has come."""
    raw = pipeline.lake_location.read(spark, TableName(Zone.RAW, "orders")).where(f"batch <= {batch}")
    newest = raw.selectExpr("max(ingested_at)").first()[0].astimezone(UTC)
    kept_s = pipeline.retention_s["raw"]
    later = maintain(
        spark, pipeline, compact=False, vacuum=False, now=newest + timedelta(seconds=kept_s, milliseconds=1)
    )
    assert [str(each.table) for each in later] == ["raw.orders"]


def ids(spark: Any, pipeline: Pipeline, zone: str) -> list[str]:
    return [row[0] for row in rows(spark, pipeline, zone, "orders", "order_id")]


@pytest.mark.long
@pytest.mark.parametrize("key", [["order_id"], []], ids=["key", "no-key"])
def test_rows_that_raw_has_forgotten_survive_replays_and_backfills(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, key: list[str]
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, staging={"key": key}, retention_s={"raw": 3600.0},
        trusted={"rules": [in_range("amount", 0, 100)]},
    )  # fmt: skip
    runner = SourceRunner(spark, pipeline, "orders")
    for numbers in ([1, 2, 300], [3, 400], [5, 6]):
        produce(name, [order(number) for number in numbers])
        runner.drain()
    forget_raw(spark, pipeline, 1)
    strict = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 5)])])
    seen: list[Preview] = []

    def confirm(preview: Preview) -> bool:
        seen.append(preview)
        return True

    done = replay(spark, strict, "orders", confirm=confirm)
    assert (done.rows_in, done.accepted, done.quarantined) == (4, 2, 2)
    assert ids(spark, strict, "staging") == ["o1", "o2", "o3", "o300", "o400", "o5", "o6"]
    assert ids(spark, strict, "trusted") == ["o1", "o2", "o3", "o5"]
    assert rows(spark, strict, "quarantine", "orders", "batch") == [(1,), (2,), (3,)]
    assert list(seen[0].lines())[1:] == [
        "staging.orders: 3 rows that raw does not bring back stay as they are",
        "trusted.orders: 2 rows that raw does not bring back stay as they are",
    ]
    # The topic still has the first batch: a backfill reads it again.
    now = datetime.now(UTC)
    done = backfill(spark, pipeline, "orders", now - timedelta(hours=1), now + timedelta(hours=1))
    assert (done.rows_in, done.accepted) == (7, 5)
    assert ids(spark, pipeline, "staging") == ["o1", "o2", "o3", "o300", "o400", "o5", "o6"]
    assert ids(spark, pipeline, "trusted") == ["o1", "o2", "o3", "o5", "o6"]


@pytest.mark.long
def test_a_rebuild_asks_before_it_removes_rows_that_raw_has_forgotten(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": ()}, retention_s={"raw": 3600.0}
    )
    runner = SourceRunner(spark, pipeline, "orders")
    for number in (1, 2):
        produce(name, [order(number)])
        runner.drain()
    forget_raw(spark, pipeline, 1)
    texts = Schema(DDL.replace("amount DOUBLE", "amount STRING"))
    other = replace(pipeline, sources=[replace(pipeline.sources[0], schema=texts)])
    with pytest.raises(
        NeedsDecision, match=r"staging\.orders: 1 rows that raw does not bring back are removed"
    ):
        replay(spark, other, "orders", rebuild=True)
    assert ids(spark, pipeline, "staging") == ["o1", "o2"]
    replay(spark, other, "orders", rebuild=True, confirm=lambda preview: preview.removed == 2)
    assert rows(spark, other, "trusted", "orders", "order_id", "amount") == [("o2", "2.0")]


@pytest.mark.parametrize(
    "last",
    [pytest.param(4, id="a-fine-row", marks=pytest.mark.long), pytest.param(1, id="a-duplicate")],
)
def test_a_backfill_is_not_written_again_by_the_next_start(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, last: int
) -> None:
    """The rows that the backfill reads again carry the number of the last batch."""
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": [in_range("amount", 0, 100)]}, refined=[DOUBLED],
        retention_s={"raw": 3600.0},
    )  # fmt: skip
    for numbers in ([1, 2, 300], [last]):
        produce(name, [order(number) for number in numbers])
        SourceRunner(spark, pipeline, "orders").drain()
    forget_raw(spark, pipeline, 1)
    now = datetime.now(UTC)
    backfill(spark, pipeline, "orders", now - timedelta(hours=1), now + timedelta(hours=1))
    strict = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 1)])])
    found = {}
    for each in (pipeline, strict):
        SourceRunner(spark, each, "orders").drain()
        found[each.trusted[0].rules[0].high] = [
            ids(spark, each, "staging"),
            ids(spark, each, "trusted"),
            [row[0] for row in rows(spark, each, "refined", "doubled", "order_id")],
            rows(spark, each, "quarantine", "orders", "offset"),
        ]
    others = ["o4"] if last == 4 else []
    expected = [["o1", "o2", "o300", *others], ["o1", "o2", *others], ["o2", *others], [(2,)]]
    assert found == {100: expected, 1: expected}
    if last == 4:  # the last batch is not noted as complete, as after a kill: rows count by their coordinates
        (Path(lake) / "_barnabas" / "complete" / "orders.json").unlink()
        SourceRunner(spark, pipeline, "orders").drain()
        assert rows(spark, pipeline, "quarantine", "orders", "offset") == [(2,)]
        assert ids(spark, pipeline, "trusted") == ["o1", "o2", "o4"]


def test_a_backfill_adds_no_record_of_another_time(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    """Producers give timestamps, so between two offsets may be records of any time."""
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, retention_s={"raw": 3600.0})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    start = datetime(2026, 1, 1, 10, tzinfo=UTC)
    for number, minutes in enumerate((0, -60, 30, 60)):
        at = start + timedelta(minutes=minutes)
        producer.produce(name, json.dumps(order(number)).encode(), timestamp=int(at.timestamp() * 1000))
    assert producer.flush(30) == 0
    runner = SourceRunner(spark, pipeline, "orders")
    runner.drain()
    produce(name, [order(9)])
    runner.drain()
    forget_raw(spark, pipeline, 1)
    done = backfill(spark, pipeline, "orders", start, start + timedelta(hours=1))
    assert rows(spark, pipeline, "raw", "orders", "offset") == [(0,), (2,), (4,)]
    assert done.rows_in == 2 and len(ids(spark, pipeline, "staging")) == 5


def test_a_replay_keeps_records_that_a_person_mended(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": [in_range("amount", 0, 10)]})
    produce(name, [order(1), order(2, amount="many"), order(3, amount="few"), order(400)])
    SourceRunner(spark, pipeline, "orders").drain()
    mended = json.dumps(order(2, amount=5.0))
    spark.sql(
        f"UPDATE {pipeline.lake_location.identifier(TableName(Zone.QUARANTINE, 'orders'))}"
        f" SET value = CAST('{mended}' AS BINARY) WHERE offset = 1"
    )
    release(spark, pipeline, "orders")
    seen: list[Preview] = []

    def confirm(preview: Preview) -> bool:
        seen.append(preview)
        return True

    loose = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 1000)])])
    replay(spark, loose, "orders", confirm=confirm)
    assert rows(spark, loose, "staging", "orders", "order_id", "amount") == [
        ("o1", 1.0), ("o2", 5.0), ("o400", 400.0),
    ]  # fmt: skip
    assert ids(spark, loose, "trusted") == ["o1", "o2", "o400"]
    waiting = pipeline.lake_location.read(spark, TableName(Zone.QUARANTINE, "orders"))
    assert [row[0] for row in waiting.where("released_at IS NULL").select("offset").collect()] == [2]
    assert list(seen[0].lines())[1:] == [
        "staging.orders: 1 rows that raw does not bring back stay as they are",
        "trusted.orders: 1 rows that raw does not bring back stay as they are",
    ]
    with pytest.raises(
        NeedsDecision, match=r"staging\.orders: 1 rows that raw does not bring back are removed"
    ):
        replay(spark, pipeline, "orders", rebuild=True)


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def dying_after(monkeypatch: pytest.MonkeyPatch, number: int, spark: Any) -> Iterator[list[str]]:
    """End the command after its commit of this number, of whatever kind; the paths of the commits so far."""
    made: list[str] = []

    def counting(before: Callable[..., Any], path_at: int) -> Callable[..., Any]:
        def commit(*arguments: Any, **named: Any) -> Any:
            if len(made) >= number:
                raise Killed
            result = before(*arguments, **named)
            made.append(str(arguments[path_at]))
            if len(made) >= number:
                raise Killed
            return result

        return commit

    with monkeypatch.context() as patch:
        for module in ("replay", "backfill", "release"):  # nothing is interrupted
            patch.setattr(f"barnabas.pipeline.ingest.rewriting.{module}.finish", lambda *_: None)
        for name, path_at in (("append", 1), ("overwrite", 1), ("merge", 1), ("delete", 1)):
            patch.setattr(commits, name, counting(getattr(commits, name), path_at))
        sql = type(spark).sql

        def merging(session: Any, statement: str, *rest: Any, **named: Any) -> Any:
            is_commit = statement.lstrip().startswith("MERGE") and "quarantine" in statement
            run = counting(sql, 1) if is_commit else sql
            return run(session, statement, *rest, **named)

        patch.setattr(type(spark), "sql", merging)
        yield made


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("step_count", "kind"), [(3, "rules"), (7, "malformed")])
def test_a_release_that_is_killed_after_any_commit_is_finished_by_the_next(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str,
    monkeypatch: pytest.MonkeyPatch, step_count: int, kind: str,
) -> None:  # fmt: skip
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": [in_range("amount", 0, 10)]}, refined=[DOUBLED]
    )
    known = replace(pipeline.trusted[0], name="known", rules=[in_range("amount", 0, 1000)])
    pipeline = replace(pipeline, trusted=[*pipeline.trusted, known])
    fixed = replace(
        pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 100)]), known]
    )
    runner = SourceRunner(spark, pipeline, "orders")
    expected = ["o1"]
    for step in range(1, step_count + 1):
        number = 10 + step
        produce(name, [order(1), order(number, amount="5") if kind == "malformed" else order(number)])
        runner.drain()
        if kind == "malformed":  # a person mends the record
            mended = json.dumps(order(number, amount=5.0 if step % 2 else 500.0))
            spark.sql(
                f"UPDATE {pipeline.lake_location.identifier(TableName(Zone.QUARANTINE, 'orders'))}"
                f" SET value = CAST('{mended}' AS BINARY) WHERE zone = 'staging' AND released_at IS NULL"
            )
        with dying_after(monkeypatch, step, spark) as made, suppress(Killed):
            release(spark, fixed, "orders")
        # Quarantine gets a new commit before the release is repeated.
        produce(name, [order(number + 500)])
        runner.drain()
        done = release(spark, fixed, "orders")
        is_accepted = kind == "rules" or step % 2 == 1
        expected += [f"o{number}"] if is_accepted else []
        assert ids(spark, fixed, "trusted") == sorted(expected), made
        doubled = [row[0] for row in rows(spark, fixed, "refined", "doubled", "order_id")]
        assert doubled == sorted(set(expected) - {"o1"}), (made, done)
        staged = [row[0] for row in rows(spark, fixed, "staging", "orders", "order_id")]
        assert len(staged) == len(set(staged)) == 2 * step + 1, made
        accepted = [row[0] for row in rows(spark, fixed, "trusted", "known", "order_id")]
        assert accepted == staged, made
        quarantined = rows(spark, fixed, "quarantine", "orders", "offset", "zone")
        assert len(quarantined) == len(set(quarantined)), made

"""Batches of a topic through all zones: once each, whatever is in them and whatever dies."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.engine.errors import (
    ForeignLake,
    LakeUnavailable,
    NeedsDecision,
    SourceUnavailable,
    classified,
)
from barnabas.pipeline import Drift, Schema, Staging, TableName, Zone
from barnabas.pipeline.ingest.results import BatchResult
from barnabas.pipeline.ingest.schemas import inferred_ddl
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.sources.topic import TopicReader
from barnabas.spark.formats.ddl import parse_columns
from pipeline.orders import DOUBLED, RULES, order, orders_pipeline, rows

pytestmark = pytest.mark.timeout(300)  # Spark takes its time on a machine that is busy

Topic = Callable[..., str]
Produce = Callable[..., None]


def test_a_batch_goes_through_all_zones_and_broken_rows_into_quarantine(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic()
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, source={"lateness_s": 3600.0}, trusted={"mask": {"card": "last4"}},
        refined=[DOUBLED],
    )  # fmt: skip
    runner = SourceRunner(spark, pipeline, "orders")
    assert runner.step() is None  # a topic without data
    good = [order(number) for number in range(10)]
    produce(name, good, partition=0)
    produce(
        name,
        [
            good[3],  # again
            order(20, amount=-1.0),
            order(21, shop="UPPER", amount=13.0),
            order(22, email="u1@example.org"),
            order(23, shop=None),
            b"{no json",
            order(24, amount="many"),
            [order(25)],
            order(26, at="1970-01-01T00:00:00Z"),
            None,
        ],
        partition=1,
    )
    batch = runner.step()
    assert batch is not None
    assert (batch.batch, batch.rows_in, batch.duplicates, batch.malformed) == (1, 20, 1, 4)
    assert (batch.staged, batch.accepted, batch.quarantined) == (15, 10, 9)
    assert {str(each.table) for each in batch.changed} == {
        "staging.orders", "trusted.orders", "quarantine.orders", "refined.doubled",
    }  # fmt: skip
    assert len(rows(spark, pipeline, "raw", "orders", "value")) == 20
    assert rows(spark, pipeline, "refined", "doubled", "order_id", "twice")[0] == ("o2", 4.0)
    [trusted] = [
        row
        for row in rows(spark, pipeline, "trusted", "orders", "order_id", "email", "card")
        if row[0] == "o1"
    ]
    assert trusted[2] == "************1111" and len(trusted[1]) == 64
    refused = rows(spark, pipeline, "quarantine", "orders", "zone", "rule", "reason")
    assert [(zone, rule) for zone, rule, _ in refused] == [
        *[("staging", "malformed")] * 4,
        ("trusted", "freshness_at"), ("trusted", "not_null_shop"), ("trusted", "pattern_shop"),
        ("trusted", "range_amount"), ("trusted", "unique_email"),
    ]  # fmt: skip
    reasons = {reason for _, _, reason in refused}
    assert "amount is -1.0, it must be from 0 to 1000" in reasons
    assert "shop is UPPER, it must match [a-z]+; not true: amount <> 13" in reasons
    assert 'amount is "many", which is no double' in reasons and "there is no value" in reasons
    # A duplicate in a later batch, a late row, and a value that is taken.
    produce(name, [good[5], order(30, at="2025-12-31T00:00:00Z"), order(31, email="u2@example.org")])
    batch = runner.step()
    assert batch is not None
    assert (batch.rows_in, batch.duplicates, batch.staged, batch.accepted, batch.late) == (3, 1, 2, 1, 1)
    assert runner.step() is None and runner.lag() == 0
    # Another process goes on where this one was.
    produce(name, [order(5), order(40)])
    again = SourceRunner(spark, pipeline, "orders")
    batch = again.step()
    assert batch is not None and (batch.batch, batch.duplicates, batch.staged) == (3, 1, 1)
    assert not batch.recovered
    with pytest.raises(ForeignLake, match="of pipeline shop, not to source orders of pipeline other"):
        SourceRunner(spark, replace(pipeline, name="other"), "orders").step()


@pytest.mark.parametrize(
    ("which", "where"),
    [
        pytest.param("first", "before raw", marks=pytest.mark.long),
        pytest.param("first", "behind raw", marks=pytest.mark.long),
        pytest.param("later", "before raw", marks=pytest.mark.long),
        pytest.param("later", "behind raw", marks=pytest.mark.long),
        ("later", "behind trusted"),
    ],
)
def test_an_interrupted_batch_is_finished_and_nothing_is_written_twice(
    spark: Any,
    broker: Any,
    topic: Topic,
    produce: Produce,
    lake: str,
    which: str,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first batch of a process is committed by Delta's writer, later ones by `append_after`."""
    from barnabas.pipeline.lake import commits

    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, refined=[DOUBLED])
    runner = SourceRunner(spark, pipeline, "orders")
    earlier = [order(8), order(9)] if which == "later" else []
    if earlier:
        produce(name, [*earlier, b"broken"])
        runner.drain()
    produce(name, [order(1), order(2), order(2), order(3, amount=-1.0), b"broken"])
    part = {"before raw": "/raw/", "behind raw": "/staging/", "behind trusted": "/refined/"}[where]
    died: list[str] = []
    append, append_after = commits.append, commits.append_after

    def dies(app: str, how: str) -> None:
        if part in app + "/":
            died.append(how)
            raise OSError("killed")

    def dies_in_append(frame: Any, path: str, txn: commits.Txn, **options: Any) -> None:
        dies(txn.app, "first")
        append(frame, path, txn, **options)

    def dies_in_append_after(frame: Any, path: str, version: int, app: str, *rest: Any) -> int | None:
        dies(app, "later")
        return append_after(frame, path, version, app, *rest)

    with monkeypatch.context() as patch, pytest.raises(Exception, match="killed"):
        patch.setattr(commits, "append", dies_in_append)
        patch.setattr(commits, "append_after", dies_in_append_after)
        runner.step()
    assert died == [which]
    # The same runner, or one of another process: both look into the lake.
    runner = runner if where == "behind raw" else SourceRunner(spark, pipeline, "orders")
    batch = runner.step()
    assert batch is not None and batch.recovered == (where != "before raw")
    assert runner.step() is None
    for again in (runner, SourceRunner(spark, pipeline, "orders")):
        assert again.step() is None
    before = [(each["order_id"],) for each in earlier]
    assert len(rows(spark, pipeline, "raw", "orders", "offset")) == 5 + len(earlier) + bool(earlier)
    assert rows(spark, pipeline, "staging", "orders", "order_id") == [("o1",), ("o2",), ("o3",), *before]
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == [("o1",), ("o2",), *before]
    assert rows(spark, pipeline, "refined", "doubled", "order_id") == [("o2",), *before]
    assert len(rows(spark, pipeline, "quarantine", "orders", "offset")) == 2 + bool(earlier)


DRIFTED = [order(1), order(2, more={"a": 1}, count=7, text="5")]


def test_a_drain_goes_on_behind_slices_without_rows(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    """Records of aborted transactions take offsets, so a whole slice may hold none."""
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, source={"rows_per_batch_max": 10})
    produce(name, [order(1)])
    runner = SourceRunner(spark, pipeline, "orders")
    assert [each.rows_in for each in runner.drain()] == [1]
    aborting = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    aborting.init_transactions()
    aborting.begin_transaction()
    for number in range(30):
        aborting.produce(name, json.dumps(order(number)).encode())
    assert aborting.flush(30) == 0
    aborting.abort_transaction()
    produce(name, [order(2)])
    assert [each.rows_in for each in runner.drain()] == [1]
    assert runner.lag() == 0 and runner.drain() == []
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == [("o1",), ("o2",)]


def test_fields_that_drift_are_rescued_or_stop_the_source(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name)
    strict = replace(pipeline, lake=f"{lake}-stop", staging=[replace(pipeline.staging[0], drift=Drift.STOP)])
    produce(name, DRIFTED)
    SourceRunner(spark, pipeline, "orders").drain()
    assert rows(spark, pipeline, "staging", "orders", "order_id", "_rescued") == [
        ("o1", None), ("o2", '{"more":"{\\"a\\":1}","count":"7","text":"5"}'),
    ]  # fmt: skip
    with pytest.raises(NeedsDecision, match="count, more, text"):
        SourceRunner(spark, strict, "orders").step()


@pytest.mark.long
def test_fields_that_drift_are_added_and_keep_their_types(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name)
    adding = replace(pipeline, staging=[replace(pipeline.staging[0], drift=Drift.ADD)])
    produce(name, DRIFTED)
    runner = SourceRunner(spark, adding, "orders")
    runner.drain()
    assert rows(spark, adding, "trusted", "orders", "order_id", "more.a", "count", "text") == [
        ("o1", None, None, None), ("o2", 1, 7, "5"),
    ]  # fmt: skip
    # A column that changes its type: the row is refused, the others go on, also after a restart.
    produce(name, [order(3, count="many"), order(4, count=8)])
    for each in (runner, SourceRunner(spark, adding, "orders")):
        each.drain()
    assert rows(spark, adding, "trusted", "orders", "order_id", "count")[-1] == ("o4", 8)
    assert rows(spark, adding, "quarantine", "orders", "reason") == [('count is "many", which is no bigint',)]
    changed = replace(
        adding, sources=[replace(adding.sources[0], schema=Schema("order_id STRING, amount STRING"))]
    )
    with pytest.raises(NeedsDecision, match="amount is double in the table and string in the file"):
        SourceRunner(spark, changed, "orders").step()


def test_columns_fit_all_samples() -> None:
    source = orders_pipeline("/lake", "nowhere", "orders").sources[0]
    samples = [order(1), order(2, tags=["x"], place={"x": 1.5}, amount=3)]
    columns = inferred_ddl(source, [*(json.dumps(each).encode() for each in samples), b"broken", None])
    types = {each.name: each.kind.name for each in parse_columns(columns)}
    assert (types["amount"], types["at"], types["tags"]) == ("double", "timestamp", "array")
    assert types["place"] == "struct"
    with pytest.raises(NeedsDecision, match="none of the 1 samples"):
        inferred_ddl(source, [b"broken"])


@pytest.mark.long
def test_a_schema_is_inferred_from_samples(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": ()},
        source={"schema": Schema(infer_samples=2), "event_time": ""},
    )  # fmt: skip
    produce(name, [order(1), order(2, tags=["x"], place={"x": 1.5}), b"broken"])
    [batch] = SourceRunner(spark, pipeline, "orders").drain()
    assert (batch.staged, batch.malformed) == (2, 1)
    assert rows(spark, pipeline, "trusted", "orders", "order_id", "at", "place.x")[1][2] == 1.5
    types = dict(pipeline.lake_location.read(spark, TableName(Zone.STAGING, "orders")).dtypes)
    assert (types["amount"], types["at"], types["tags"]) == ("double", "timestamp", "array<string>")
    produce(name, [order(3)])
    assert len(SourceRunner(spark, pipeline, "orders").drain()) == 1


def test_change_events_of_debezium_are_applied_in_order(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    def change(op: str, before: Any, after: Any, wrapped: bool = False) -> dict[str, Any]:
        found = {"op": op, "before": before, "after": after, "ts_ms": 1, "source": {"table": "customers"}}
        return {"schema": {}, "payload": found} if wrapped else found

    def row(number: int, name: str) -> dict[str, Any]:
        return {"order_id": f"o{number}", "shop": name, "amount": float(number)}

    name = topic(partitions=1)
    schema = Schema("order_id STRING, shop STRING, amount DOUBLE")
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": RULES[:2], "hash": ()},
        source={"changes": "debezium", "event_time": "", "schema": schema},
    )  # fmt: skip
    produce(
        name,
        [
            change("r", None, row(1, "a")),
            change("c", None, row(2, "b"), True),
            change("u", None, row(1, "c")),
        ],
    )
    runner = SourceRunner(spark, pipeline, "orders")
    [batch] = runner.drain()
    assert (batch.rows_in, batch.staged, batch.duplicates) == (3, 2, 1)
    produce(
        name,
        [
            change("u", row(2, "b"), row(2, "d")), change("d", row(1, "c"), None), None,
            change("c", None, row(3, "e")),
            change("u", row(3, "e"), {**row(3, "f"), "amount": -5.0}), change("t", None, None), b"broken",
        ],
    )  # fmt: skip
    [batch] = runner.drain()
    assert (batch.malformed, batch.quarantined) == (2, 3)
    assert rows(spark, pipeline, "staging", "orders", "order_id", "shop") == [("o2", "d"), ("o3", "f")]
    # The last good version stays until one passes.
    assert rows(spark, pipeline, "trusted", "orders", "order_id", "shop") == [("o2", "d")]


def test_an_unavailable_source_is_tried_again(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    away = orders_pipeline(lake, "127.0.0.1:1", "orders")
    runner = SourceRunner(spark, away, "orders")
    with pytest.raises(SourceUnavailable, match="orders cannot be read") as caught:
        runner.step()
    assert caught.value.retryable
    missing = orders_pipeline(lake, broker.bootstrap, "nobody-made-this")
    with pytest.raises(SourceUnavailable, match="there is no such topic"):
        SourceRunner(spark, missing, "orders").step()


@pytest.mark.long
def test_bandwidth_limits_what_a_batch_reads(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    source = {"bandwidth_bytes_s": 60_000.0, "rows_per_batch_max": 1000}
    pipeline = orders_pipeline(lake, broker.bootstrap, name, source=source, trusted={"rules": ()})
    produce(name, [order(number) for number in range(1500)])
    batches = SourceRunner(spark, pipeline, "orders").drain()
    assert batches[0].rows_in == 1000 and sum(batch.rows_in for batch in batches) == 1500
    # The pause begins when raw has the rows: a slow machine spends it on writing the other zones.
    seconds = (batches[1].started - batches[0].started).total_seconds()
    assert seconds >= batches[0].bytes / 60_000.0 - 0.1


class PausingReader:
    """Has one batch, after a pause that ends during a step."""

    waits_s = 1.0
    batches_left = 1

    def goal(self) -> None:
        return None

    def has_reached(self, position: Any, goal: Any) -> bool:
        return False

    def lag(self, position: Any) -> int:
        return self.batches_left


class SlowRunner(SourceRunner):
    """Reads without Spark."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._checkpoint = None
        self._has_tables = True
        self._has_moved = False
        self._audit = None

    def step(self) -> BatchResult | None:
        reader: Any = self._reader
        self._has_moved = False
        if reader.waits_s or not reader.batches_left:
            reader.waits_s = 0.0
            return None
        reader.batches_left -= 1
        self._has_moved = True
        at = datetime.now(UTC)
        return BatchResult(pipeline="shop", source="orders", batch=1, rows_in=1, started=at, ended=at)


def test_a_pause_that_ends_during_a_step_does_not_end_the_reading() -> None:
    assert len(SlowRunner(PausingReader()).drain()) == 1


@pytest.mark.long
def test_rows_that_arrive_while_a_source_is_read_are_left_for_the_next_time(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": ()})
    numbers = count(2)
    read = TopicReader.next

    def busy(reader: TopicReader, position: Any) -> Any:
        produce(name, [order(next(numbers))])
        return read(reader, position)

    produce(name, [order(1)])
    monkeypatch.setattr(TopicReader, "next", busy)
    [batch] = SourceRunner(spark, pipeline, "orders").drain()
    assert batch.rows_in == 2


def test_errors_of_spark_are_classified() -> None:
    assert isinstance(classified(OSError("x: No space left on device"), "writing"), LakeUnavailable)
    assert "disk is full" in str(classified(OSError("No space left on device"), "writing"))
    secret = classified(ValueError("jdbc:mysql://me:hunter2@h/x failed\nat java"), "reading")
    assert "hunter2" not in str(secret) and "at java" not in str(secret)
    java = ValueError(
        "An error occurred while calling o1.load.\n: org.sqlite.SQLiteException: no such table: x\n\tat y"
    )
    assert str(classified(java, "reading")).endswith("(org.sqlite.SQLiteException: no such table: x)")


@pytest.mark.long
def test_two_stagings_of_one_source_have_separate_keys(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name)
    pipeline = replace(
        pipeline, staging=[*pipeline.staging, Staging(name="shops", source="orders", key=["shop"])]
    )
    produce(name, [order(1), order(4), order(2)])
    SourceRunner(spark, pipeline, "orders").drain()
    assert len(rows(spark, pipeline, "staging", "orders", "shop")) == 3
    assert rows(spark, pipeline, "staging", "shops", "shop") == [("b",), ("c",)]

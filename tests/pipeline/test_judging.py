"""Executors judge a batch as the driver does, with keys in memory and with keys that are looked up."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

from barnabas.pipeline import Staging, TableName, Trusted, in_range, unique
from barnabas.pipeline.ingest import batch_parser
from barnabas.pipeline.ingest.dedupe import known_keys
from barnabas.pipeline.ingest.dedupe.known_keys import KnownKeys, key_hashes
from barnabas.pipeline.ingest.judging.driver_judge import DriverJudge
from barnabas.pipeline.ingest.judging.executor_judge import ORDER, ExecutorJudge
from barnabas.pipeline.ingest.judging.judgement import Case, Judgement
from barnabas.pipeline.ingest.judging.parsed_batch import ParsedBatch, collected, counted, totals_of
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.spec.model import Merging
from pipeline.orders import order, orders_pipeline, rows

pytestmark = pytest.mark.timeout(600)  # Spark takes its time on a machine that is busy

Topic = Callable[..., str]
Produce = Callable[..., None]

ROWS = 120
DAY_US = 86_400_000_000
START_US = 1_767_225_600_000_000
PARSED = (
    "_row bigint, key string, email string, _malformed boolean, _op string, _broken0 bigint,"
    " refers bigint, late boolean, at bigint,"
    " o_batch bigint, o_topic string, o_partition int, o_offset bigint"
)
TABLE = "key string, email string, _batch bigint, _ingested_at timestamp"


class TableInMemory:
    """Stands for the lake: one table that does not change."""

    is_local = False
    is_read_by_us = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def version(self, spark: Any, table: TableName) -> int:
        return 1

    def read(self, spark: Any, table: TableName, version: int | None = None) -> Any:
        return self._frame


def parsed_rows(rng: random.Random) -> list[tuple[Any, ...]]:
    found = []
    for number in range(ROWS):
        is_malformed = rng.random() < 0.1
        key = None if is_malformed or rng.random() < 0.1 else f"k{rng.randrange(50)}"
        email = None if rng.random() < 0.2 else f"e{rng.randrange(40)}"
        op = rng.choice("uuuuudi")
        at = START_US + (number // 40) * DAY_US  # three batches of a replay
        found.append(
            (number, key, email, is_malformed, op, rng.choice((0, 0, 0, 1)), rng.choice((0, 0, 0, 2)),
             rng.random() < 0.3, at, number // 40, "t", number % 40 // 20, number % 20)
        )  # fmt: skip
    return found


def table_rows(rng: random.Random) -> list[tuple[Any, ...]]:
    start = datetime.fromtimestamp(START_US / 1e6, UTC)
    return [
        (f"k{rng.randrange(50)}", f"e{rng.randrange(40)}", rng.choice((7, 8)),
         start + timedelta(days=rng.randrange(-6, 7)))
        for _ in range(25)
    ]  # fmt: skip


def batches_of(spark: Any, values: Sequence[tuple[Any, ...]]) -> tuple[ParsedBatch, ParsedBatch]:
    """The same rows with facts on the driver, and with facts on executors."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    frame = spark.createDataFrame(list(values), PARSED).repartition(3).persist()
    wanted = [
        F.col("_row"), F.col("_malformed").alias("malformed"), F.lit(1).alias("bytes"), F.col("late"),
        (F.col("_op") == "i").alias("ignored"), (F.col("_op") == "d").alias("deletes"), F.col("at"),
        F.lit(False).alias("rescued"), F.col("_broken0").alias("own0"),
        (F.col("_broken0") + F.col("refers")).alias("broken0"),
    ]  # fmt: skip
    for name, column in (("k0", "key"), ("u0_2", "email")):
        for part, each in zip("abn", key_hashes([F.col(column)]), strict=True):
            wanted.append(each.alias(f"{name}{part}"))
    facts = frame.select(*wanted, *ORDER)
    arrays = collected(frame.select(*wanted))
    schema = StructType.fromDDL("key string, email string")
    small = ParsedBatch(frame, totals_of(arrays), schema, False, arrays)
    large = ParsedBatch(frame, counted(facts), schema, False, facts=facts)
    assert small.totals == large.totals
    return small, large


def shown(found: Judgement) -> dict[str, Any]:
    def numbers(chosen: Any, *columns: str) -> list[tuple[Any, ...]]:
        rows = sorted(tuple(row) for row in chosen.rows().select("_row", *columns).collect())
        assert len(rows) == chosen.count
        return rows

    return {
        "malformed": numbers(found.malformed),
        "late": found.late,
        "duplicates": found.duplicates,
        "repeated": [numbers(each) for each in found.repeated],
        "staged": [numbers(each) for each in found.staged],
        "accepted": {index: numbers(each) for index, each in found.accepted.items()},
        "refused": {index: numbers(each, "_bits") for index, each in found.refused.items()},
    }


@pytest.mark.parametrize(
    ("merging", "within_s", "is_staged"),
    [
        (Merging.INSERT_NEW, None, False),
        (Merging.INSERT_NEW, 2 * 86_400.0, False),
        pytest.param(Merging.UPSERT, None, False, marks=pytest.mark.long),
        pytest.param(Merging.INSERT_NEW, None, True, marks=pytest.mark.long),
    ],
    ids=["events", "within-two-days", "changes", "release"],
)
def test_executors_judge_as_the_driver_does(
    spark: Any,
    merging: Merging,
    within_s: float | None,
    is_staged: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(f"{merging} {within_s} {is_staged}")
    staging = Staging(name="t", source="s", key=["key"], within_s=within_s)
    once = unique("email", name="once", within_s=within_s and within_s / 2)
    trusted = Trusted(name="t", staging="t", rules=[in_range("key"), in_range("email"), once])
    lake: Any = TableInMemory(spark.createDataFrame(table_rows(rng), TABLE).persist())

    def known(table: TableName, columns: Sequence[str], within_us: int | None = None) -> KnownKeys | None:
        if merging is not Merging.INSERT_NEW:
            return None
        return KnownKeys(spark, lake, table, columns, within_us)

    case = Case([staging], [(staging, trusted)], merging, 8, known, is_staged=is_staged)
    small, large = batches_of(spark, parsed_rows(rng))
    expected = shown(DriverJudge(small, case).judge())
    assert expected["staged"][0] and expected["accepted"][0] and expected["refused"][0]
    assert expected == shown(ExecutorJudge(large, case).judge())
    if merging is Merging.INSERT_NEW:  # keys that do not fit into the driver's memory are looked up
        monkeypatch.setattr(known_keys, "KEYS_ON_DRIVER_MAX", 0)
        assert expected == shown(DriverJudge(small, case).judge())
        monkeypatch.setattr("barnabas.pipeline.ingest.judging.executor_judge.KEYS_BROADCAST_MAX", 0)
        monkeypatch.setattr("barnabas.pipeline.ingest.judging.executor_judge.ROWS_BROADCAST_MAX", 0)
        assert expected == shown(ExecutorJudge(large, case).judge())
    large.release()


@pytest.mark.long
def test_a_duplicate_behind_the_horizon_is_a_new_row(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, staging={"within_s": 7 * 86_400.0}, trusted={"rules": ()}
    )
    start = datetime(2026, 1, 1, tzinfo=UTC)
    now = [start]
    runner = SourceRunner(spark, pipeline, "orders", clock=lambda: now[0])
    staged = []
    # The rows of a key that count are those of days 0, 8 and 16. Small and large batches take turns.
    for day, is_large in ((0, True), (6, False), (8, False), (14, True), (16, True)):
        now[0] = start + timedelta(days=day)
        monkeypatch.setattr(batch_parser, "ROWS_ON_DRIVER_MAX", 0 if is_large else 1000)
        produce(name, [order(1), order(1), order(100 + day), b"{broken"])
        batch = runner.step()
        assert batch is not None and batch.malformed == 1
        staged.append((batch.staged, batch.duplicates))
    assert staged == [(2, 1), (1, 2), (2, 1), (1, 2), (2, 1)]
    found = rows(spark, pipeline, "staging", "orders", "_batch", "order_id")
    assert [batch for batch, key in found if key == "o1"] == [1, 3, 5]
    # Without a horizon the key counts once and for all.
    forever = replace(pipeline, staging=[replace(pipeline.staging[0], within_s=None)])
    now[0] = start + timedelta(days=400)
    produce(name, [order(1), order(500)])
    batch = SourceRunner(spark, forever, "orders", clock=lambda: now[0]).step()
    assert batch is not None and (batch.staged, batch.duplicates) == (1, 1)

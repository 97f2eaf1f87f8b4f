"""Replays, backfills and batches are killed after every commit: what is repeated goes on, and is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

from barnabas.pipeline import Pipeline, Schema, in_range
from barnabas.pipeline.ingest import batch_parser, compaction, table_properties
from barnabas.pipeline.ingest.rewriting import chunks as chunking
from barnabas.pipeline.ingest.rewriting.backfill import backfill
from barnabas.pipeline.ingest.rewriting.chunks import Chunk, Counted, grouped
from barnabas.pipeline.ingest.rewriting.progress import FOLDER, Progress
from barnabas.pipeline.ingest.rewriting.replay import replay
from barnabas.pipeline.ingest.rewriting.replay_preview import Preview
from barnabas.pipeline.ingest.source_runner import SourceRunner
from pipeline.lakes import live_files
from pipeline.orders import DOUBLED, order, orders_pipeline, rows
from pipeline.test_rewriting_exactly import Killed, dying_after

pytestmark = pytest.mark.timeout(1200)  # Spark takes its time on a machine that is busy

Topic = Callable[..., str]
Produce = Callable[..., None]
CHANGED_DDL = "order_id STRING, shop STRING, amount DOUBLE"


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 50), st.integers(0, 30)), max_size=40),
    st.integers(1, 60),
    st.one_of(st.none(), st.integers(1, 60)),
)
def test_chunks_hold_all_batches_in_order_and_none_is_too_large(
    steps: list[tuple[int, int, int]], rows_max: int, span: int | None
) -> None:
    batch = at = 0
    batches = []
    for gap, count, pause in steps:
        batch, at = batch + gap, at + pause
        batches.append(Counted(batch, count, at, at))
    found = list(grouped(iter(batches), rows_max, span))
    held = [[each for each in batches if chunk.first <= each.batch < chunk.end] for chunk in found]
    assert [each for some in held for each in some] == batches
    for chunk, some in zip(found, held, strict=True):
        assert chunk == Chunk(some[0].batch, some[-1].batch + 1, sum(each.rows for each in some))
        assert chunk.rows <= rows_max or len(some) == 1
        assert span is None or len(some) == 1 or some[-1].until_us - some[0].since_us <= span


def test_progress_counts_for_the_same_command_on_the_same_definition(tmp_path: Path) -> None:
    pipeline = orders_pipeline(str(tmp_path / "lake"), "127.0.0.1:1", "orders")
    source = pipeline.sources[0]
    progress = Progress(pipeline, source, "replay 0 9")
    assert progress.resumes_at is None
    progress.note(4)
    assert Progress(pipeline, source, "replay 0 9").resumes_at == 4
    assert Progress(pipeline, source, "replay 0 8").resumes_at is None
    strict = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=())])
    assert Progress(strict, source, "replay 0 9").resumes_at is None
    other = replace(source, schema=Schema(ddl="order_id STRING"))
    assert Progress(pipeline, other, "replay 0 9").resumes_at is None
    progress.finish()
    assert Progress(pipeline, source, "replay 0 9").resumes_at is None


def check(spark: Any, pipeline: Pipeline, numbers: list[int], limit: float, why: object) -> None:
    """Every order is in staging once, and in trusted and refined or in quarantine."""
    accepted = sorted(f"o{number}" for number in numbers if number <= limit)
    assert rows(spark, pipeline, "staging", "orders", "order_id") == sorted((f"o{n}",) for n in numbers), why
    assert [row[0] for row in rows(spark, pipeline, "trusted", "orders", "order_id")] == accepted, why
    doubled = [row[0] for row in rows(spark, pipeline, "refined", "doubled", "order_id")]
    assert doubled == [each for each in accepted if each != "o1"], why
    refused = rows(spark, pipeline, "quarantine", "orders", "partition", "offset", "rule")
    assert len(refused) == len(set(refused)) == len(numbers) - len(accepted), why


@pytest.fixture
def one_batch_a_chunk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(chunking, "ROWS_PER_CORE_MAX", 1)
    yield


@pytest.mark.usefixtures("one_batch_a_chunk")
@pytest.mark.parametrize(
    "points", [(5,), pytest.param(tuple(range(1, 11)), marks=pytest.mark.long)], ids=["one", "all"]
)
@pytest.mark.long
def test_a_replay_that_is_killed_after_any_commit_goes_on_behind_its_last_chunk(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str,
    monkeypatch: pytest.MonkeyPatch, points: tuple[int, ...],
) -> None:  # fmt: skip
    name = topic(partitions=1)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, trusted={"rules": [in_range("amount", 0, 10)]}, refined=[DOUBLED]
    )
    runner = SourceRunner(spark, pipeline, "orders")
    for numbers in ([1, 2, 300], [3, 2, 400], [5, 600, 1]):
        produce(name, [order(number) for number in numbers])
        runner.drain()
    everything = [1, 2, 3, 5, 300, 400, 600]
    for point in points:
        limit = 350.0 if point % 2 else 4.0
        other = replace(
            pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, limit)])]
        )
        with dying_after(monkeypatch, point, spark) as made, suppress(Killed):
            replay(spark, other, "orders")
        seen: list[Preview] = []

        def confirm(preview: Preview, seen: list[Preview] = seen) -> bool:
            seen.append(preview)
            return True

        # A chunk is at most three commits: staging, trusted, quarantine. Whole chunks are not repeated.
        done = replay(spark, other, "orders", confirm=confirm)
        if len(made) >= point and point > 3:
            assert seen[0].resumes_at and done.rows_in < 9, made
        check(spark, other, everything, limit, made)
    assert not list((Path(lake) / "_barnabas" / FOLDER).glob("*"))


@pytest.mark.long
@pytest.mark.usefixtures("one_batch_a_chunk")
@pytest.mark.parametrize("point", [1, 2, 3, 4, 5])
def test_a_backfill_that_is_killed_after_any_commit_is_finished_by_the_next(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str,
    monkeypatch: pytest.MonkeyPatch, point: int,
) -> None:  # fmt: skip
    name = topic(partitions=2)
    pipeline = orders_pipeline(
        lake, broker.bootstrap, name, source={"starting": "latest"},
        trusted={"rules": [in_range("amount", 0, 10)]}, refined=[DOUBLED],
    )  # fmt: skip
    for partition, numbers in enumerate(([1, 2], [300])):
        produce(name, [order(number) for number in numbers], partition=partition)
    runner = SourceRunner(spark, pipeline, "orders")
    assert runner.step() is None  # it begins at the end
    produce(name, [order(3), order(2), order(400)], partition=0)
    runner.drain()
    now = datetime.now(UTC)
    span = (now - timedelta(hours=1), now + timedelta(hours=1))
    with dying_after(monkeypatch, point, spark) as made, suppress(Killed):
        backfill(spark, pipeline, "orders", *span)
    backfill(spark, pipeline, "orders", *span)
    check(spark, pipeline, [1, 2, 3, 300, 400], 10, made)
    raw = rows(spark, pipeline, "raw", "orders", "partition", "offset")
    assert len(raw) == len(set(raw)) == 6, made


@pytest.mark.long
def test_small_files_are_compacted_beside_batches_and_old_tables_get_statistics(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "COMMITS_TO_COMPACT", 3)
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, trusted={"rules": ()})
    staging = f"delta.`{lake}/staging/orders`"
    runner = SourceRunner(spark, pipeline, "orders")
    for number in range(4):
        produce(name, [order(number), order(0)])
        batch = runner.step()
        assert batch is not None and batch.duplicates == 1
        runner.wait_for_compaction()
    files, _ = live_files(Path(lake) / "staging" / "orders")
    assert len(files) == 2  # one of three batches, and one of the fourth
    assert len(live_files(Path(lake) / "raw" / "orders")[0]) == 2
    # A lake of an older version: the next start gives its tables the properties of new ones.
    spark.sql(f"ALTER TABLE {staging} UNSET TBLPROPERTIES ('{table_properties.STATISTICS}')")
    table_properties.forget_what_was_seen()
    produce(name, [order(7), order(1)])
    batch = SourceRunner(spark, pipeline, "orders").step()
    assert batch is not None and (batch.batch, batch.duplicates) == (5, 1)
    found = dict(spark.sql(f"SHOW TBLPROPERTIES {staging}").collect())
    assert (
        "`_batch`" in found[table_properties.STATISTICS]
        and "`order_id`" in found[table_properties.STATISTICS]
    )
    newest = max(
        live_files(Path(lake) / "staging" / "orders")[0].values(), key=lambda each: each["modificationTime"]
    )
    assert (
        '"minValues"' in newest["stats"]
        and '"_batch":5' in newest["stats"]
        and '"order_id"' in newest["stats"]
    )


@pytest.mark.long
@pytest.mark.parametrize("is_large", [False, True], ids=["on-the-driver", "on-executors"])
def test_a_replay_of_changes_reads_from_its_first_batch_and_later_changes_win(
    spark: Any, broker: Any, topic: Topic, produce: Produce, lake: str,
    monkeypatch: pytest.MonkeyPatch, is_large: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(batch_parser, "ROWS_ON_DRIVER_MAX", 0 if is_large else 1000)

    def change(op: str, number: int, shop: str, amount: float = 1.0) -> dict[str, Any]:
        row = {"order_id": f"o{number}", "shop": shop, "amount": amount}
        return {"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}

    name = topic(partitions=1)
    source = {"changes": "debezium", "event_time": "", "schema": Schema(CHANGED_DDL)}
    pipeline = orders_pipeline(
        lake,
        broker.bootstrap,
        name,
        source=source,
        trusted={"rules": [in_range("amount", 0, 10)], "hash": ()},
    )
    runner = SourceRunner(spark, pipeline, "orders")
    for batch in (
        [change("c", 1, "a"), change("c", 2, "a"), b"{broken", change("c", 8, "a", 99.0)],
        [change("u", 1, "b"), change("c", 3, "b"), change("c", 4, "b", 50.0)],
        [change("d", 3, "b"), change("u", 1, "c"), change("c", 5, "c")],
    ):
        produce(name, batch)
        runner.drain()
    looser = replace(pipeline, trusted=[replace(pipeline.trusted[0], rules=[in_range("amount", 0, 60)])])
    done = replay(spark, looser, "orders", 2, 2)
    assert done.rows_in == 6  # of the second and the third batch
    last = [("o1", "c"), ("o2", "a"), ("o4", "b"), ("o5", "c"), ("o8", "a")]
    assert rows(spark, looser, "staging", "orders", "order_id", "shop") == last
    assert rows(spark, looser, "trusted", "orders", "order_id", "shop") == last[:-1]
    # Rows of the first batch that wait in quarantine stay there.
    assert rows(spark, looser, "quarantine", "orders", "batch", "zone") == [(1, "staging"), (1, "trusted")]

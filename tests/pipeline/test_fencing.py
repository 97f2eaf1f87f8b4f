"""Commits of a host that lost the lease are refused, whenever it was paused; the new holder writes once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.engine.delta import fencing
from barnabas.engine.delta.fencing import fence
from barnabas.engine.delta.fencing import last_numbers as found_numbers
from barnabas.engine.delta.log import newest_version
from barnabas.engine.errors import CommitConflict, classified
from barnabas.engine.lease_status import LeaseStatus, boot_id, is_fenced
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.lake import commits
from barnabas.testing.waiting import wait_until
from pipeline.orders import DOUBLED, order, orders_pipeline, rows

pytestmark = pytest.mark.timeout(600)  # Spark takes its time on a machine that is busy


def take_over(lake: str, epoch: int) -> None:
    """Another host has the lease now, and has not fenced the tables yet."""
    LeaseStatus(epoch, True, False, until=1e12, boot=boot_id()).write(Path(lake) / "_barnabas")


def waiting_for(started: Path, go: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows that are there only when a file is: their transaction is under way until then."""

    def read(frames: Iterator[Any]) -> Iterator[Any]:
        import time

        for frame in frames:
            started.touch()
            while not go.exists():
                time.sleep(0.05)
            yield frame

    return read


def without_classes(*_: Any) -> bool:
    """As on Spark Connect."""
    return False


@pytest.mark.parametrize("way", ["transaction", pytest.param("appends", marks=pytest.mark.long)])
def test_a_commit_that_was_begun_before_the_fence_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "appends":
        monkeypatch.setattr(fencing, "fence_by_transaction", without_classes)
    else:
        monkeypatch.setattr(fencing, "last_numbers", None)  # is not asked
    path, app = str(tmp_path / "table"), "shop/orders/raw"
    one = spark.range(1).coalesce(1)
    commits.append(one, path, commits.Txn.of(app, 0, 1), properties={})
    started, go = tmp_path / "started", tmp_path / "go"
    slow = one.mapInPandas(waiting_for(started, go), "id long")
    errors: list[Exception] = []

    def commit() -> None:
        try:
            commits.append(slow, path, commits.Txn.of(app, 0, 2))
        except Exception as error:
            errors.append(classified(error, "a commit"))

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        wait_until(started.exists, 120, "the transaction is under way")
        fence(spark, path, [app], 1)
    finally:
        go.touch()
        thread.join()
    assert [type(error) for error in errors] == [CommitConflict]
    # One that begins later is skipped; that of the new epoch is done once, and a batch that was there never.
    version = newest_version(f"{path}/_delta_log")
    commits.append(one, path, commits.Txn.of(app, 0, 3))
    commits.append(one, path, commits.Txn.of(app, 1, 1))
    assert newest_version(f"{path}/_delta_log") == version
    for _ in range(2):
        commits.append(one, path, commits.Txn.of(app, 1, 2))
    fence(spark, path, [app], 1)
    assert newest_version(f"{path}/_delta_log") == version + 1
    assert spark.read.format("delta").load(path).count() == 2
    assert found_numbers(spark, path) == {app: commits.EPOCH + 2}


@pytest.mark.long
@pytest.mark.parametrize("pause", ["before raw", "before the zones"])
def test_a_paused_host_writes_nothing_after_another_took_over(
    spark: Any, broker: Any, topic: Callable[..., str], produce: Callable[..., None], lake: str,
    monkeypatch: pytest.MonkeyPatch, pause: str,
) -> None:  # fmt: skip
    name = topic(partitions=1)
    pipeline = orders_pipeline(lake, broker.bootstrap, name, staging={"key": ()}, refined=[DOUBLED])
    paused = SourceRunner(spark, pipeline, "orders")
    produce(name, [order(number) for number in (1, 2, 13)])
    paused.drain()
    produce(name, [order(number) for number in (3, 4, 13)])

    def meanwhile() -> None:
        take_over(lake, 1)
        next_holder = SourceRunner(spark, pipeline, "orders")
        next_holder.drain()
        assert is_fenced(Path(lake) / "_barnabas", 1)

    if pause == "before raw":
        meanwhile()
        with pytest.raises(CommitConflict):
            paused._step()  # the pause came after the look at the lease
    else:
        write = paused._parser.write

        def pausing(*arguments: Any, **named: Any) -> Any:
            meanwhile()
            return write(*arguments, **named)

        monkeypatch.setattr(paused._parser, "write", pausing)
        paused._step()
    with pytest.raises(Exception, match="epoch 1, this process is of 0"):
        paused.step()
    everything = [(f"o{number}",) for number in (1, 13, 13, 2, 3, 4)]
    assert rows(spark, pipeline, "staging", "orders", "order_id") == everything
    assert rows(spark, pipeline, "trusted", "orders", "order_id") == [(f"o{n}",) for n in (1, 2, 3, 4)]
    assert rows(spark, pipeline, "refined", "doubled", "order_id") == [(f"o{n}",) for n in (2, 3, 4)]
    assert len(rows(spark, pipeline, "quarantine", "orders", "rule")) == 2
    produce(name, [order(5)])
    [batch] = SourceRunner(spark, pipeline, "orders").drain()
    assert (batch.batch, batch.accepted) == (3, 1)

"""Commits of batches: once each, however they are made, and Delta is asked only where it has to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.engine.delta.log import newest_version, transactions_in
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.commits import CHANGES, Appender, Txn
from barnabas.pipeline.lake.tables import Lake, TableName

pytestmark = pytest.mark.timeout(600)


def test_a_batch_is_committed_once_by_any_writer_with_its_id(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = commits.append

    def spied(rows: Any, path: str, txn: Txn, **options: Any) -> None:
        asked.append(txn.version)
        real(rows, path, txn, **options)

    monkeypatch.setattr(commits, "append", spied)
    path, log = str(tmp_path / "table"), str(tmp_path / "table" / "_delta_log")
    session = spark.newSession()
    first = Appender(Lake(str(tmp_path)))
    for batch in (1, 2, 3):
        properties = CHANGES if batch == 1 else None
        first.append(
            session.range(batch), path, Txn("feed", batch), metadata=f"m{batch}", properties=properties
        )
    assert asked == [1]  # the others come right behind a commit of their own
    assert [transactions_in(log, version) for version in range(3)] == [[("feed", n)] for n in (1, 2, 3)]
    history = session.sql(f"DESCRIBE HISTORY delta.`{path}`").orderBy("version").collect()
    assert [(row["userMetadata"], row["operation"]) for row in history] == [
        (f"m{n}", "WRITE") for n in (1, 2, 3)
    ]
    # Another process that carries the same batch again changes nothing.
    Appender(Lake(str(tmp_path))).append(session.range(9), path, Txn("feed", 3))
    assert newest_version(log) == 2
    # Another writer committed, perhaps this very batch: Delta searches its log.
    second = Appender(Lake(str(tmp_path)))
    second.append(session.range(4), path, Txn("feed", 4))
    first.append(session.range(9), path, Txn("feed", 4))
    first.append(session.range(5), path, Txn("feed", 5))
    assert asked[:4] == [1, 3, 4, 4]
    assert newest_version(log) == 4
    assert session.read.format("delta").load(path).count() == 1 + 2 + 3 + 4 + 5
    # What is read as changes is what was added.
    changes = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    assert changes.load(path).where("_change_type = 'insert'").count() == 2 + 3 + 4 + 5


def test_the_newest_version_is_found_after_a_table_is_recreated(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    assert newest_version(str(log)) == -1
    log.mkdir()
    for version in range(12):
        (log / f"{version:020}.json").write_text("{}")
        assert newest_version(str(log)) == version
    (log / f"{11:020}.json").unlink()
    assert newest_version(str(log)) == 10
    for path in log.iterdir():
        path.unlink()
    assert newest_version(str(log)) == -1
    (log / f"{3:020}.json").write_text("{}")  # the first ones were cleaned up
    assert newest_version(str(log)) == 3


def test_a_folder_that_a_killed_process_left_without_a_commit_is_no_table(tmp_path: Path) -> None:
    table = TableName.parse("quarantine.orders")
    lake = Lake(str(tmp_path))
    log = tmp_path / "quarantine" / "orders" / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    session: Any = None  # logs of a folder are read without Spark
    assert not lake.exists(session, table)
    (log / f"{0:020}.json").write_text("{}")
    assert lake.exists(session, table)

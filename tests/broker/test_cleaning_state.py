"""Checkpoints of the cleaner, across restarts and moves, in Kafka's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.upkeep.cleaning_state import CleaningState
from barnabas.storage import LogDirs, LogSettings, TopicPartition
from barnabas.storage.compaction.cleanable import Cleanable
from barnabas.storage.dirs.formatting import format_log_dir
from barnabas.storage.logs.context import LogContext

NOW_MS = 1_700_000_000_000
A, B = TopicPartition("a", 0), TopicPartition("b", 1)


@pytest.fixture
def log_dirs(tmp_path: Path) -> Iterator[LogDirs]:
    """Two dirs with one log each."""
    paths = [f"{tmp_path}/1", f"{tmp_path}/2"]
    for path in paths:
        format_log_dir(LogContext(), path, "AAAAAAAAAAAAAAAAAAAAAQ", 1)
    found = LogDirs.open(paths, node_id=1)
    found.load(lambda topic: LogSettings(), now_ms=NOW_MS)
    for where in (A, B):
        found.create(where, LogSettings(), topic_id=None, now_ms=NOW_MS)
    assert [list(each.logs) for each in found.dirs] == [[A], [B]]
    yield found
    found.abandon()


def test_every_dir_has_a_checkpoint_of_its_own_logs(log_dirs: LogDirs, tmp_path: Path) -> None:
    state = CleaningState(log_dirs)
    state.clean_to(A, 5)
    state.clean_to(B, 7)
    state.clean_to(TopicPartition("gone", 0), 9)
    state.store()
    assert (tmp_path / "1" / "cleaner-offset-checkpoint").read_text() == "0\n1\na 0 5\n"
    assert (tmp_path / "2" / "cleaner-offset-checkpoint").read_text() == "0\n1\nb 1 7\n"
    again = CleaningState(log_dirs)
    assert (again.checkpoint(A), again.checkpoint(B)) == (5, 7)


def test_an_entry_follows_its_log_to_another_dir(log_dirs: LogDirs, tmp_path: Path) -> None:
    state = CleaningState(log_dirs)
    state.clean_to(A, 5)
    state.store()
    log_dirs.dirs[1].logs[A] = log_dirs.dirs[0].logs.pop(A)
    assert CleaningState(log_dirs).checkpoint(A) == 5
    state.store()
    assert (tmp_path / "1" / "cleaner-offset-checkpoint").read_text() == "0\n0\n"
    assert (tmp_path / "2" / "cleaner-offset-checkpoint").read_text() == "0\n1\na 0 5\n"


def test_of_two_checkpoints_the_one_in_the_dir_of_the_log_counts(log_dirs: LogDirs, tmp_path: Path) -> None:
    (tmp_path / "1" / "cleaner-offset-checkpoint").write_text("0\n1\nb 1 3\n")
    (tmp_path / "2" / "cleaner-offset-checkpoint").write_text("0\n1\nb 1 7\n")
    assert CleaningState(log_dirs).checkpoint(B) == 7


def test_a_truncated_log_is_clean_no_further_than_its_end(log_dirs: LogDirs) -> None:
    state = CleaningState(log_dirs)
    state.clean_to(A, 50)
    state.truncated(A, 60)
    assert state.checkpoint(A) == 50
    state.truncated(A, 20)
    assert state.checkpoint(A) == 20
    state.truncated(B, 20)
    assert state.checkpoint(B) is None


def test_deleted_topics_are_forgotten(log_dirs: LogDirs) -> None:
    state = CleaningState(log_dirs)
    state.clean_to(A, 50)
    state.mark_uncleanable(A, "damaged")
    state.mark_uncleanable(B, "damaged")
    assert state.forget({"a", "of which nothing is known"})
    assert not state.forget({"a"})
    assert (state.checkpoint(A), state.is_uncleanable(A)) == (None, False)
    assert state.is_uncleanable(B)


def test_an_uncleanable_mark_ends_with_its_log(log_dirs: LogDirs) -> None:
    state = CleaningState(log_dirs)
    state.mark_uncleanable(A, "damaged")
    state.mark_uncleanable(B, "damaged")
    log_dirs.delete(A, now_ms=NOW_MS)
    state.begin_look(NOW_MS)
    assert state.uncleanable() == [B]


def test_metrics_show_the_dirtiest_log_and_the_longest_delay(log_dirs: LogDirs) -> None:
    state = CleaningState(log_dirs)
    state.end_look([Cleanable(0, 1, 50, 50, 0, False), Cleanable(0, 1, 90, 10, 7000, False)])
    assert (state.max_dirty_ratio, state.max_delay_ms) == (0.5, 7000)
    state.end_look([])
    assert (state.max_dirty_ratio, state.max_delay_ms) == (0.0, 0)

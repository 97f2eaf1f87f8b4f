"""The state of a task stands at the version that the brokers committed, whatever died."""

from pathlib import Path

import pytest

from barnabas.streams.spark.state_files import NEW, StateFile, StateLost


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "application" / "0_1.sqlite"


def committed(path: Path, version: str = "one") -> StateFile:
    state = StateFile(path)
    state.settle(NEW)
    state.put("counts", b"a", b"1")
    state.put("counts", b"b", b"2")
    state.prepare(version)
    state.commit(version)
    return state


def test_a_committed_batch_is_there_after_a_restart(path: Path) -> None:
    committed(path).close()
    again = StateFile(path)
    again.settle("one")
    assert (again.get("counts", b"a"), again.get("counts", b"z")) == (b"1", None)


def test_changes_of_a_batch_that_was_not_committed_are_gone(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"a", b"7")
    state.prepare("two")
    state.close()
    again = StateFile(path)
    again.settle("one")
    assert again.get("counts", b"a") == b"1"


def test_a_batch_that_died_after_its_commit_is_applied(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"a", b"7")
    state.delete("counts", b"b")
    state.prepare("two")
    state.close()
    again = StateFile(path)
    again.settle("two")
    assert list(again.range("counts", None, None)) == [(b"a", b"7")]
    again.settle("two")


def test_of_two_attempts_the_committed_one_counts(path: Path) -> None:
    first, second = committed(path), StateFile(path)
    second.settle("one")
    first.put("counts", b"a", b"first")
    first.prepare("two-first")
    second.put("counts", b"a", b"second")
    second.prepare("two-second")
    third = StateFile(path)
    third.settle("two-first")
    assert third.get("counts", b"a") == b"first"


def test_memory_of_an_older_version_is_not_used(path: Path) -> None:
    here, there = committed(path), StateFile(path)
    assert here.get("counts", b"a") == b"1"
    there.settle("one")
    there.put("counts", b"a", b"9")
    there.prepare("two")
    there.commit("two")
    here.settle("two")
    assert here.get("counts", b"a") == b"9"


def test_a_version_that_cannot_be_reached_is_an_error(path: Path) -> None:
    state = committed(path)
    with pytest.raises(StateLost, match="stands at version one, committed is nine"):
        state.settle("nine")
    state.clear("nine")
    state.settle("nine")
    assert list(state.range("counts", None, None)) == []


def test_a_range_shows_the_batchs_own_changes_in_order(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"aa", b"new")
    state.delete("counts", b"b")
    state.put("other", b"ab", b"not here")
    assert list(state.range("counts", None, None)) == [(b"a", b"1"), (b"aa", b"new")]
    assert list(state.range("counts", b"aa", b"b")) == [(b"aa", b"new")]

"""State files whose windows an earlier version has laid out as one page a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.plans.interpreter import loading
from barnabas.plans.interpreter.records import Record
from barnabas.plans.interpreter.state.pages import KEYED, PAGED
from barnabas.plans.interpreter.task import Task
from barnabas.streams import StreamsBuilder, TimeWindows
from barnabas.streams.spark.state_files import NEW, StateFile

assert loading.OPERATORS


def counts(state: StateFile, times: range) -> dict[int, int]:
    """The count of each window that a batch has changed, by the window's start."""
    builder = StreamsBuilder("app")
    windows = TimeWindows(10, 10, 100_000)
    builder.stream("in").group_by_key(key=str).windowed_by(windows).count(store="counts")
    task = Task(builder.build().subtopologies[0], state, application_id="app")
    outputs = task.process_batch(("in", Record(b"a", b"1", time)) for time in times)
    return {
        int.from_bytes((each.key or b"")[1:9], "big"): int.from_bytes(each.value or b"", "big")
        for each in outputs
    }


def committed(state: StateFile, version: str) -> None:
    state.prepare(version)
    state.commit(version)


@pytest.mark.parametrize("fails", [False, True])
def test_windows_of_an_earlier_version_go_on(tmp_path: Path, fails: bool) -> None:
    state = StateFile(tmp_path / "0_0.sqlite")
    state.settle(NEW)
    counts(state, range(0, 1_000, 5))
    pages = list(state.range("counts", PAGED, bytes([PAGED[0] + 1])))
    assert len(pages) > 10
    for key, _ in pages:
        state.delete("counts", key)
    state.delete("counts", b"l")
    state.put("counts", KEYED + b"a", b"".join(page for _, page in pages))
    committed(state, "one")
    state.close()

    state = StateFile(tmp_path / "0_0.sqlite")
    if fails:  # the batch that lays it out anew is not committed
        state.settle("one")
        counts(state, range(500, 510))
        state.prepare("two")
        state.drop_changes()
    state.settle("one")
    assert counts(state, range(500, 515)) == {500: 12, 510: 7}
    committed(state, "two")
    state.settle("two")
    assert list(state.range("counts", KEYED, b"l")) == []
    assert counts(state, range(0, 1_000, 5))[990] == 4

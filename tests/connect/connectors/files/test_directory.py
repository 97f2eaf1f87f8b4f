"""The directory source: which files it reads, and what becomes of them. Spark reads the rows elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.contexts import Offsets, frozen

from barnabas.connect.connectors.files.directory_source import DirectorySource, DirectorySourceConnector
from barnabas.connect.plugins import Slice, SourceContext


class Reading:
    """A source whose rows nobody reads; offsets are stored before `commit`, as a worker does."""

    def __init__(self, folder: Path, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.finished = folder / "in", folder / "done"
        self.folder.mkdir(exist_ok=True)
        self.offsets = Offsets()
        config = {
            "topic": "t", "input.path": str(self.folder), "input.format": "text", "cleanup.policy": policy,
            "finished.path": str(self.finished),
        }  # fmt: skip
        monkeypatch.setattr(DirectorySource, "_frame", lambda *_: (None, None))
        self.source = DirectorySource()
        settings = DirectorySourceConnector.CONFIG.parse(config)
        self.source.start(SourceContext("c", 0, settings, config, offsets=self.offsets))

    def write(self, name: str, text: str, modified_s: int) -> Path:
        path = self.folder / name
        path.write_text(text)
        os.utime(path, (modified_s, modified_s))
        return path

    def plan(self) -> Slice | None:
        spark: Any = None
        return self.source.plan(spark, self.offsets)

    def read(self) -> list[str]:
        """The names of the next files, whose offsets are stored then."""
        found = self.plan()
        if found is None:
            return []
        for partition, offset in found.positions:
            self.offsets[frozen(partition)] = dict(offset)
        return [Path(partition["file"]).name for partition, _ in found.positions]

    def commit(self) -> None:
        self.source.commit([(dict(each), offset) for each, offset in self.offsets.items()])


@pytest.mark.parametrize("policy", ["DELETE", "MOVE"])
def test_a_new_file_of_the_same_name_is_read(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(tmp_path, policy, monkeypatch)
    for number, text in enumerate(("one", "two2", "three")):
        path = reading.write("daily.csv", text, 1000 + number)
        assert reading.read() == ["daily.csv"]
        reading.commit()
        assert not path.exists()
        assert reading.read() == []
    if policy == "MOVE":
        assert sorted(each.read_text() for each in reading.finished.iterdir()) == ["one", "three", "two2"]


@pytest.mark.parametrize("policy", ["DELETE", "MOVE"])
def test_a_file_that_a_crash_left_is_cleaned_up_without_reading(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(tmp_path, policy, monkeypatch)
    path = reading.write("a.csv", "one", 1000)
    assert reading.read() == ["a.csv"]  # the process dies before `commit`
    other = reading.write("b.csv", "two", 1001)
    assert reading.read() == ["b.csv"]
    assert not path.exists()
    assert other.exists()


def test_a_file_that_came_while_the_former_was_written_is_not_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(tmp_path, "DELETE", monkeypatch)
    reading.write("a.csv", "one", 1000)
    assert reading.read() == ["a.csv"]
    path = reading.write("a.csv", "another", 1001)
    reading.commit()
    assert path.read_text() == "another"
    assert reading.read() == ["a.csv"]


def test_a_file_that_changes_is_not_read_again_if_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(tmp_path, "NONE", monkeypatch)
    reading.write("a.csv", "one", 1000)
    assert reading.read() == ["a.csv"]
    reading.commit()
    path = reading.write("a.csv", "one and more", 1001)
    assert reading.read() == []
    assert path.exists()

"""The tail of a log that rotates: each line once, in order, over restarts."""

from __future__ import annotations

import gzip
import random
import shutil
from pathlib import Path

import pytest
from tests.connect.connectors.contexts import Offsets, started_source

from barnabas.connect.connectors.files.tail_source import TailSourceConnector
from barnabas.connect.plugins import ConnectError, SourceTask


class Log:
    """A log that an application writes and logrotate rotates."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "app.log"
        self.written: list[str] = []
        self._time = 1_000_000_000

    def write(self, count: int) -> None:
        with self.path.open("a") as file:
            for _ in range(count):
                self.written.append(f"line {len(self.written)} ä")
                file.write(f"{self.written[-1]}\n")

    def shift(self) -> None:
        for number in range(8, 0, -1):
            for suffix in ("", ".gz"):
                old = self.path.with_name(f"app.log.{number}{suffix}")
                if old.exists():
                    old.rename(self.path.with_name(f"app.log.{number + 1}{suffix}"))

    def rename(self) -> None:
        self.shift()
        if self.path.exists():
            self.path.rename(self.path.with_name("app.log.1"))

    def copy_and_truncate(self) -> None:
        self.shift()
        if self.path.exists():
            shutil.copy2(self.path, self.path.with_name("app.log.1"))
            with self.path.open("r+b") as file:
                file.truncate(0)

    def compress(self) -> None:
        for plain in sorted(self.path.parent.glob("app.log.?")):
            packed = plain.with_name(f"{plain.name}.gz")
            with plain.open("rb") as file, gzip.open(packed, "wb") as out:
                shutil.copyfileobj(file, out)
            shutil.copystat(plain, packed)
            plain.unlink()


def drained(task: SourceTask, offsets: Offsets) -> list[str]:
    found, quiet = [], 0
    while quiet < 4:  # files end, the next ones begin
        records = task.poll()
        quiet = quiet + 1 if records is None else 0
        if records is not None:
            found += records.values.pylist()
            offsets.store(records)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_each_line_comes_once_through_rotations_and_restarts(tmp_path: Path, seed: int) -> None:
    rng, log, offsets, found = random.Random(seed), Log(tmp_path), Offsets(), []
    config = {"file": str(log.path), "topic": "t", "rotate.wait.ms": "0", "batch.size": "7"}
    log.write(3)
    task = started_source(TailSourceConnector, config, offsets)
    found += drained(task, offsets)
    for _ in range(25):
        action = rng.choice(["write", "write", "rename", "truncate", "compress", "restart", "drain"])
        if action == "write":
            log.write(rng.randrange(1, 40))
        elif action == "rename":
            log.rename()
            log.write(rng.randrange(1, 9))
        elif action == "truncate":
            found += drained(task, offsets)  # its copy and truncation would lose lines by itself otherwise
            log.write(rng.randrange(0, 9))
            log.copy_and_truncate()
            log.write(rng.randrange(1, 9))
        elif action == "compress":
            found += drained(task, offsets)
            log.compress()
        elif action == "restart":
            task.stop()
            task = started_source(TailSourceConnector, config, offsets)
        else:
            found += drained(task, offsets)
        if len(list(tmp_path.iterdir())) > 7:
            found += drained(task, offsets)
    found += drained(task, offsets)
    task.stop()
    assert found == log.written


def test_a_place_that_is_nowhere_is_an_error_and_not_a_gap(tmp_path: Path) -> None:
    log, offsets = Log(tmp_path), Offsets()
    config = {"file": str(log.path), "topic": "t"}
    log.write(5)
    task = started_source(TailSourceConnector, config, offsets)
    drained(task, offsets)
    task.stop()
    log.path.unlink()
    log.path.write_text("something else that is longer than what was there before\n" * 9)
    with pytest.raises(ConnectError, match="neither it nor a rotated file"):
        started_source(TailSourceConnector, config, offsets)

"""A task's logic for tests: counts records by key, in state, results and a changelog."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.streams.spark.state_files import StateFile
from barnabas.streams.spark.task_port import Headers, InputRecord


class Counted(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int | None = None


class Counting:
    def __init__(self, state: StateFile, partition: int) -> None:
        self._state = state

    def process(self, topic: str, record: InputRecord) -> list[Counted]:
        assert record.key is not None
        count = str(int(self._state.get("counts", record.key) or b"0") + 1).encode()
        self._state.put("counts", record.key, count)
        return [Counted("results", record.key, count, record.timestamp)]

    def finish(self) -> list[Counted]:
        return []

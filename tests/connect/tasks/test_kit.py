"""Connectors run in the test kit as they run in a worker: rows, offsets, single failures."""

from __future__ import annotations

from typing import Any

from barnabas.connect.data import INT64, Records, struct
from barnabas.connect.plugins import Connector, SinkTask, source
from barnabas.connect.tasks.kit import Kit


@source(topic="numbers", schema=struct(n=INT64))
def numbers(context: Any, offset: Any) -> Any:
    first = (offset or {"n": 0})["n"]
    for n in range(first, 5):
        yield {"n": n}, {"n": n + 1}


def test_a_source_goes_on_at_the_offset_that_it_is_given() -> None:
    where = {"source": "test"}
    kit = Kit(numbers, {}, offsets=[(where, {"n": 3})])
    assert [row.value for row in kit.poll(10)] == [{"n": 3}, {"n": 4}]
    assert kit.offsets.read([where]) == [{"n": 5}]


class KeepTask(SinkTask):
    kept: list[Any]

    def put(self, records: Records) -> None:
        self.kept = records.values.pylist()
        self.context.errant(records, [1], ValueError("not this one"))


class Keep(Connector):
    KIND = "sink"
    task = KeepTask


def test_a_sink_gets_rows_and_reports_single_ones() -> None:
    kit = Kit(Keep, {})
    kit.put("t", [1, 2], INT64)
    assert kit.task.kept == [1, 2]
    assert [(record.value, record.offset, str(error)) for record, error in kit.errant] == [
        (2, 1, "not this one")
    ]

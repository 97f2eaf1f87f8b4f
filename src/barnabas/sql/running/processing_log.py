"""The processing log: rows that could not be read, expressions that raised, rows that operators left out.

In: what a task meets. Out: records for the log's topic, in ksqlDB's JSON, written with the batch's results. A
batch writes so many lines at most and counts the others. Does not know: topics' settings, tasks' order.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from barnabas.plans.interpreter.records import Failure, Output, Problem
from barnabas.plans.interpreter.task import Handlers
from barnabas.sql.analysis.times import NoTime
from barnabas.sql.execution.json_values import dumped, json_value
from barnabas.sql.formats.contract import BadKeyBytes
from barnabas.sql.types.sql_types import STRING

LINES_MAX = 1000  # of a batch
CAUSES_MAX = 10
DESERIALIZATION, PROCESSING, PRODUCTION, SERIALIZATION, THREAD = range(5)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`topic` None: lines are counted only. A query stops at a record that cannot be read
    (`fails_on_bad_bytes`), has no time (`fails_on_bad_times`), or leads to a row that cannot be written
    (`fails_on_bad_rows`). `includes_rows`: lines have the record too."""

    query_id: str
    topic: str | None
    fails_on_bad_bytes: bool = False
    fails_on_bad_times: bool = False
    fails_on_bad_rows: bool = True
    includes_rows: bool = False


@dataclass
class ProcessingLog:
    """The lines of one batch of a task. Its `handlers` are the task's."""

    settings: LogSettings
    lines: list[Output] = field(default_factory=list)
    left_out: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def handlers(self) -> Handlers:
        return Handlers(self._bad_bytes, self._bad_time, self._bad_row, self._problem)

    def _bad_bytes(self, failure: Failure) -> Literal["continue", "fail"]:
        target = "key" if isinstance(failure.error, BadKeyBytes) else "value"
        record = failure.record
        row = record.key if target == "key" else record.value
        self._add(
            f"{failure.node}.deserializer",
            {
                "type": DESERIALIZATION,
                "deserializationError": {
                    "target": target,
                    "errorMessage": f"Error deserializing message from topic: {failure.topic}",
                    "recordB64": self._base64(row),
                    "cause": causes(failure.error),
                    "topic": failure.topic,
                    "partition": record.partition,
                    "offset": record.offset,
                },
            },
        )
        return "fail" if self.settings.fails_on_bad_bytes else "continue"

    def _bad_time(self, failure: Failure) -> Literal["continue", "fail"]:
        """All other errors of the plan's own steps stop the query."""
        if not isinstance(failure.error, NoTime) or self.settings.fails_on_bad_times:
            return "fail"
        self._add(f"{failure.node}.timestamp", processing_error("Failed to extract timestamp", failure))
        return "continue"

    def _bad_row(self, failure: Failure) -> Literal["continue", "fail"]:
        """A row that its format cannot write, such as one with a decimal that has too many digits."""
        record = failure.record
        self._add(
            f"{failure.node}.serializer",
            {
                "type": SERIALIZATION,
                "serializationError": {
                    "target": "value",
                    "errorMessage": "Error serializing message to topic",
                    "record": self._base64(record.value),
                    "cause": causes(failure.error),
                    "topic": failure.topic,
                    "partition": record.partition,
                    "offset": record.offset,
                },
            },
        )
        return "fail" if self.settings.fails_on_bad_rows else "continue"

    def _base64(self, data: bytes | None) -> str | None:
        if data is None or not self.settings.includes_rows:
            return None
        return base64.b64encode(data).decode()

    def _problem(self, problem: Problem) -> None:
        self.counts["expressions without a value"] += 1
        self._add(
            problem.logger,
            {
                "type": PROCESSING,
                "recordProcessingError": {
                    "errorMessage": problem.message,
                    "record": self._row(problem.row),
                    "cause": [problem.cause],
                    "topic": problem.topic,
                    "partition": problem.partition,
                    "offset": problem.offset,
                },
            },
        )

    def _row(self, row: Any) -> str | None:
        """The row that an expression had before it: its values as an array of JSON, as in ksqlDB."""
        if not isinstance(row, dict) or not self.settings.includes_rows:
            return None
        return dumped([json_value(each, STRING) for each in row.values()])

    def left_out_by_operators(self, dropped: Mapping[str, int]) -> None:
        """A line for each reason of which an operator has left rows out in this batch."""
        for reason, count in dropped.items():
            if reason != "deserialization":
                self._add(
                    "dropped",
                    {
                        "type": PROCESSING,
                        "recordProcessingError": {
                            "errorMessage": f"{count} row{'s' if count > 1 else ''} left out: {reason}",
                            "record": None,
                            "cause": [],
                        },
                    },
                )

    def _add(self, logger: str, message: dict[str, Any]) -> None:
        if self.settings.topic is None:
            return
        if len(self.lines) >= LINES_MAX:
            self.left_out += 1
            return
        query_id = self.settings.query_id
        self.lines.append(
            line(self.settings.topic, f"processing.{query_id}.{logger.removeprefix(query_id + '.')}", message)
        )

    def clear(self) -> None:
        """Forget what was written down, because the batch begins again."""
        self.lines, self.left_out = [], 0
        self.counts.clear()

    def pop_lines(self) -> Sequence[Output]:
        if self.left_out and self.settings.topic is not None:
            text = f"{self.left_out} more lines of this batch are not written"
            message = {"type": PROCESSING, "recordProcessingError": {"errorMessage": text, "cause": []}}
            self.lines.append(line(self.settings.topic, f"processing.{self.settings.query_id}", message))
        taken, self.lines, self.left_out = self.lines, [], 0
        return taken


def processing_error(message: str, failure: Failure) -> dict[str, Any]:
    return {
        "type": PROCESSING,
        "recordProcessingError": {
            "errorMessage": message,
            "record": None,
            "cause": causes(failure.error),
            "topic": failure.topic,
            "partition": failure.record.partition,
            "offset": failure.record.offset,
        },
    }


def line(topic: str, logger: str, message: Mapping[str, Any]) -> Output:
    now_ms = int(time.time() * 1000)
    kinds = (
        "deserializationError",
        "recordProcessingError",
        "productionError",
        "serializationError",
        "kafkaStreamsThreadError",
    )
    data = {
        "level": "ERROR",
        "logger": logger,
        "time": now_ms,
        "message": {"type": message["type"], **{kind: message.get(kind) for kind in kinds}},
    }
    return Output(topic, None, orjson.dumps(data), now_ms)


def causes(error: BaseException) -> list[str]:
    found: list[str] = []
    each: BaseException | None = error
    while each is not None and len(found) < CAUSES_MAX:
        found.append(str(each) or type(each).__name__)
        each = each.__cause__
    return found

"""The verifiable source and sink of Apache Kafka: numbered records, each told on standard output as JSON.

The source numbers its records (key: the task, value: the number) and tells each when it is sent and when it
is committed. The sink tells each when it comes and when it is flushed. A reader of both outputs sees what was
lost or came twice. Offsets are Apache's: `{"id": task}` -> `{"seqno": number}`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, ClassVar

from barnabas.connect.config import ConfigDef, non_empty
from barnabas.connect.connectors.test.pace import Pace
from barnabas.connect.data import INT32, INT64, Column, Records
from barnabas.connect.plugins import (
    Connector,
    Positions,
    SinkContext,
    SinkOffsets,
    SinkTask,
    SourceContext,
    SourceTask,
)

UNFLUSHED_MAX = 1_000_000


def tell(lines: list[dict[str, Any]]) -> None:
    sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines))
    sys.stdout.flush()


def now_ms() -> int:
    return int(time.time() * 1000)


class VerifiableSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        self._topic = context.settings.text("topic")
        self._id = int(context.config.get("id", context.task))
        self._partition = {"id": self._id}
        [stored] = context.offsets.read([self._partition])
        self._next = 0 if stored is None else int(stored["seqno"]) + 1
        self._uncommitted = self._next
        self._pace = Pace(context.settings.integer("throughput"))

    def poll(self) -> Records | None:
        count = self._pace.due(self.context.stopping, self.context.poll_seconds)
        if not count:
            return None
        numbers = list(range(self._next, self._next + count))
        self._next += count
        self._pace.gave(count)
        tell([self._line(each, committed=False) for each in numbers])
        return Records.of(
            self._topic,
            Column.of(numbers, INT64),
            Column.of([self._id] * count, INT32),
            positions=[(self._partition, {"seqno": self._next - 1})],
        )

    def commit(self, positions: Positions) -> None:
        reached = max((int(offset["seqno"]) for _, offset in positions), default=-1)
        tell([self._line(each, committed=True) for each in range(self._uncommitted, reached + 1)])
        self._uncommitted = max(self._uncommitted, reached + 1)

    def _line(self, number: int, *, committed: bool) -> dict[str, Any]:
        return {
            "name": self.context.connector,
            "task": self._id,
            "topic": self._topic,
            "time_ms": now_ms(),
            "seqno": number,
            "committed": committed,
        }


class VerifiableSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._id = int(context.config.get("id", context.task))
        self._unflushed: list[dict[str, Any]] = []

    def put(self, records: Records) -> None:
        lines = [
            {
                "name": self.context.connector,
                "task": row.key,
                "sinkTask": self._id,
                "topic": row.topic,
                "time_ms": now_ms(),
                "seqno": row.value,
                "offset": row.offset,
                "flushed": False,
            }
            for row in records.rows()
        ]
        tell(lines)
        self._unflushed += lines
        if len(self._unflushed) > UNFLUSHED_MAX:
            self.context.request_commit()

    def flush(self, offsets: SinkOffsets) -> SinkOffsets | None:
        tell([{**line, "time_ms": now_ms(), "flushed": True} for line in self._unflushed])
        self._unflushed.clear()
        return None


class VerifiableSourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES = ("org.apache.kafka.connect.tools.VerifiableSourceConnector",)
    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef()
        .define("topic", "STRING", importance="HIGH", doc="The topic.", validator=non_empty())
        .define("throughput", "LONG", -1, "MEDIUM", "Records a second of each task; below 0: no limit.")
    )
    task = VerifiableSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.context.config, "id": str(each)} for each in range(max_tasks)]


class VerifiableSinkConnector(Connector):
    KIND = "sink"
    JAVA_NAMES = ("org.apache.kafka.connect.tools.VerifiableSinkConnector",)
    task = VerifiableSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.context.config, "id": str(each)} for each in range(max_tasks)]

"""The schema source of Apache Kafka: structs of all simple types, with one schema or two that take turns."""

from __future__ import annotations

from typing import ClassVar

from barnabas.connect.config import ConfigDef, at_least, non_empty
from barnabas.connect.connectors.test.pace import Pace
from barnabas.connect.data import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    Column,
    Records,
    struct,
)
from barnabas.connect.plugins import Connector, SourceContext, SourceTask

SIMPLE = {"boolean": BOOLEAN, "int": INT32, "long": INT64, "float": FLOAT32, "double": FLOAT64}
COUNTED = {"partitioning": INT32, "id": INT32, "seqno": INT64}
FIRST = struct({**SIMPLE, **COUNTED}, name="record", version=1)
SECOND = struct({**SIMPLE, "string": STRING, **COUNTED}, name="record", version=2)
KEY = struct({"key": STRING})
VALUES = {"boolean": True, "int": 12, "long": 12, "float": 12.2, "double": 12.2}


class SchemaSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        settings = context.settings
        self._topic, self._id = settings.text("topic"), int(context.config.get("id", context.task))
        self._count, self._partitions = settings.integer("num.msgs"), settings.integer("partition.count")
        self._has_two = settings.flag("multiple.schema")
        self._partition = {"id": self._id}
        [stored] = context.offsets.read([self._partition])
        self._next = 0 if stored is None else int(stored["seqno"]) + 1
        self._pace = Pace(settings.integer("throughput"))

    def poll(self) -> Records | None:
        due = self._pace.due(self.context.stopping, self.context.poll_seconds)
        due = min(due, self._count - self._next)
        if due <= 0:
            self.context.stopping.wait(self.context.poll_seconds)
            return None
        if self._has_two:
            due = 1  # one Records has one schema
        numbers = range(self._next, self._next + due)
        schema = SECOND if self._has_two and self._next % 2 else FIRST
        more = {"string": "def"} if schema is SECOND else {}
        parts = [each % self._partitions for each in numbers]
        rows = [
            {**VALUES, **more, "partitioning": part, "id": self._id, "seqno": each}
            for each, part in zip(numbers, parts, strict=True)
        ]
        self._next += due
        self._pace.gave(due)
        return Records.of(
            self._topic,
            Column.of(rows, schema),
            Column.of([{"key": "key"}] * due, KEY),
            partitions=parts if self._partitions > 1 else None,
            positions=[(self._partition, {"seqno": self._next - 1})],
        )


class SchemaSourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES = ("org.apache.kafka.connect.tools.SchemaSourceConnector",)
    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef()
        .define("topic", "STRING", importance="HIGH", doc="The topic.", validator=non_empty())
        .define("throughput", "LONG", -1, "MEDIUM", "Records a second of each task; below 0: no limit.")
        .define("num.msgs", "LONG", 1000, "MEDIUM", "Records of each task.", validator=at_least(0))
        .define("multiple.schema", "BOOLEAN", False, "LOW", "Whether a second schema takes turns.")
        .define("partition.count", "INT", 1, "LOW", "Partitions to write to.", validator=at_least(1))
    )
    task = SchemaSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.context.config, "id": str(each)} for each in range(max_tasks)]

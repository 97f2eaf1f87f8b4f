"""Datagen: made-up records by the name of a quickstart or by an Avro schema, with Confluent's settings.

Row n of a task depends on its seed and on n only, so a source that starts again goes on with the rows that it
would have given. Offsets: `{"task.id": task}` -> seed and the number of rows given.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from barnabas.connect.config import ConfigDef, Settings, non_empty, one_of
from barnabas.connect.connectors.test.avro_maker import Maker, maker_of
from barnabas.connect.connectors.test.quickstarts import QUICKSTARTS
from barnabas.connect.data import Column, Records, Schema
from barnabas.connect.plugins import ConnectError, Connector, SourceContext, SourceTask

ROWS_MAX = 5000  # of one poll
SCHEMA_BYTES_MAX = 1 << 20
ITERATION, SEED = "current.iteration", "random.seed"


class DatagenTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        settings = context.settings
        self._topic = settings.text("kafka.topic")
        self._schema, self._make, self._key = made_by(settings)
        self._interval_s = settings.integer("max.interval") / 1000
        self._limit = settings.integer("iterations")
        self._id = int(context.config.get("task.id", context.task))
        self._partition = {"task.id": self._id}
        [stored] = context.offsets.read([self._partition])
        given = settings.get("random.seed")
        default = self._id if given is None else int(given) + self._id
        self._seed = int((stored or {}).get(SEED, default))
        self._next = int((stored or {}).get(ITERATION, 0))
        self._due_at = time.monotonic()

    def poll(self) -> Records | None:
        count = self._count_due()
        if not count:
            return None
        rows = [self._make(Random(f"{self._seed}-{n}"), n) for n in range(self._next, self._next + count)]
        self._next += count
        keys = None
        if self._key:
            keys = Column.of([row[self._key] for row in rows], self._schema.field(self._key))
        return Records.of(
            self._topic,
            Column.of(rows, self._schema),
            keys,
            timestamps=[int(time.time() * 1000)] * count,
            positions=[(self._partition, {ITERATION: self._next, SEED: self._seed})],
        )

    def _count_due(self) -> int:
        """How many rows are due now; waits a little for the first."""
        most = ROWS_MAX if self._limit < 0 else min(ROWS_MAX, self._limit - self._next)
        if most <= 0:
            self.context.stopping.wait(self.context.poll_seconds)
            return 0
        if self._interval_s <= 0:
            return most
        self.context.stopping.wait(max(0.0, min(self._due_at - time.monotonic(), self.context.poll_seconds)))
        count, now = 0, time.monotonic()
        while count < most and self._due_at <= now:
            pause = Random(f"pause-{self._seed}-{self._next + count}").random()
            self._due_at += pause * self._interval_s
            count += 1
        return count


def made_by(settings: Settings) -> tuple[Schema, Maker, str]:
    """The schema, the maker of rows, and the field of the key."""
    name, text, file = (settings.text(each) for each in ("quickstart", "schema.string", "schema.filename"))
    if sum(map(bool, (name, text, file))) != 1:
        raise ConnectError("quickstart: give one of quickstart, schema.string, schema.filename")
    if name:
        avro, key = QUICKSTARTS[name.lower()]
    else:
        avro, key = parsed(text or read(file)), ""
    key = settings.text("schema.keyfield") or key
    schema, make = maker_of(avro)
    if not schema.fields:
        raise ConnectError("schema.string: the outermost type must be a record")
    if key and schema.field(key) is None:
        raise ConnectError(f"schema.keyfield: {key!r} is none of {', '.join(schema.field_names)}")
    return schema, make, key


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConnectError(f"schema.string: this is no JSON: {error}") from None


def read(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            return opened.read(SCHEMA_BYTES_MAX).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConnectError(f"schema.filename: {file} cannot be read: {error}") from None


class DatagenConnector(Connector):
    KIND = "source"
    JAVA_NAMES = ("io.confluent.kafka.connect.datagen.DatagenConnector",)
    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef()
        .define("kafka.topic", "STRING", importance="HIGH", doc="The topic.", validator=non_empty())
        .define(
            "quickstart", "STRING", "", "HIGH", "The name of made-up data.",
            validator=one_of("", *QUICKSTARTS, *map(str.upper, QUICKSTARTS)),
        )
        .define("schema.string", "STRING", "", "HIGH", "An Avro schema with arg.properties.")
        .define("schema.filename", "STRING", "", "HIGH", "A file with such a schema, on the worker.")
        .define("schema.keyfield", "STRING", "", "HIGH", "The field that becomes the key.")
        .define("max.interval", "LONG", 500, "HIGH", "The longest pause between two records, in ms.")
        .define("iterations", "INT", -1, "HIGH", "Records of each task; below 0: no end.")
        .define("random.seed", "LONG", None, "LOW", "Another seed gives other data.")
    )  # fmt: skip
    task = DatagenTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.context.config, "task.id": str(each)} for each in range(max_tasks)]

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        parsed_settings = {each.name: each for each in self.CONFIG.validate(config)}
        if any(each.errors for each in parsed_settings.values()):
            return {}  # reported by name already
        try:
            made_by(self.CONFIG.parse(config))
        except ConnectError as error:
            return {named(error): [str(error)]}
        return {}

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        return True


def named(error: ConnectError) -> str:
    name = str(error).partition(":")[0]
    return name if name in DatagenConnector.CONFIG.keys else "schema.string"

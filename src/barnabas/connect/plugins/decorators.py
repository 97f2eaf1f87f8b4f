"""Connectors out of functions: of DataFrames, on Spark, or a source from a generator of dicts.

`@sink` gives a Spark sink, `@frame_source` a Spark source, `@source` a source in a thread. The result is a
Connector class: name it in `connector.class` like any other. Does not know: workers.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, overload

from barnabas.connect.config import REQUIRED, ConfigDef, at_least
from barnabas.connect.data import Column, Records, Schema
from barnabas.connect.plugins.connector import SINK, SOURCE, Connector
from barnabas.connect.plugins.contexts import OffsetReader, SourceContext
from barnabas.connect.plugins.errors import ConnectError
from barnabas.connect.plugins.spark import Batch, Slice, SparkSink, SparkSource
from barnabas.connect.plugins.tasks import SourceTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_MAX = 5000  # of one poll
COUNT = "count"  # the offset of generators that give none of their own


class FunctionConnector(Connector):
    """A connector that was made of a function."""

    function: ClassVar[Callable[..., Any]]


class FunctionSink(SparkSink):
    function: ClassVar[Callable[..., Any]]

    def write(self, frame: DataFrame, batch: Batch) -> None:
        call = type(self).function
        call(*(frame, batch)[: parameters_of(call)])


class FrameSource(SparkSource):
    """Calls the function for slice after slice, with the offset that the last one reached."""

    function: ClassVar[Callable[..., Any]]
    key: ClassVar[str | None] = None

    def start(self, context: SourceContext) -> None:
        super().start(context)
        self.poll_interval_s = context.settings.integer("poll.interval.ms") / 1000

    def plan(self, spark: SparkSession, offsets: OffsetReader) -> Slice | None:
        partition = {"source": self.context.connector}
        [offset] = offsets.read([partition])
        call = type(self).function
        names = list(inspect.signature(call).parameters)
        given = {"spark": spark, "context": self.context, "offset": offset}
        if unknown := [name for name in names if name not in given]:
            raise ConnectError(
                f"{call.__name__} has a parameter {unknown[0]!r}: spark, context and offset are given"
            )
        found = call(**{name: given[name] for name in names})
        if found is None:
            return None
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping)):
            raise ConnectError(
                f"{call.__name__} must return a pair of DataFrame and offset (a dict), or None"
            )
        frame, reached = found
        return Slice(
            self._records(frame), [(partition, dict(reached))], topic=self.context.settings.text("topic")
        )

    def _records(self, frame: DataFrame) -> DataFrame:
        """Columns of records: all columns become fields of the value, unless there is a column `value`."""
        from pyspark.sql import functions as sql

        name = type(self).key
        if "value" in frame.columns:
            return frame
        if name is not None and name not in frame.columns:
            raise ConnectError(f"the key {name!r} is no column of the frame: {', '.join(frame.columns)}")
        value = sql.struct(*[sql.col(f"`{each}`") for each in frame.columns]).alias("value")
        return frame.select(*([] if name is None else [sql.col(f"`{name}`").alias("key")]), value)


class FunctionSource(SourceTask):
    """Runs the generator; when it ends, runs it again after `poll.interval.ms`, from the offset reached."""

    function: ClassVar[Callable[..., Any]]
    schema: ClassVar[Schema | None] = None
    key: ClassVar[str | None] = None

    def start(self, context: SourceContext) -> None:
        self.context = context
        self._partition = {"source": context.connector}
        self._offset = context.offsets.read([self._partition])[0]
        self._rows: Iterator[Any] | None = None
        self._skip = 0
        self._not_before = 0.0

    def _begin(self) -> Iterator[Any]:
        call = type(self).function
        rows: Iterator[Any] = iter(call(*(self.context, self._offset)[: parameters_of(call)]))
        self._skip = (self._offset or {}).get(COUNT, 0)
        self._seen = 0
        return rows

    def poll(self) -> Records | None:
        if self._rows is None:
            wait_s = self._not_before - time.monotonic()
            if wait_s > 0:
                self.context.stopping.wait(min(wait_s, self.context.poll_seconds))
                if time.monotonic() < self._not_before:
                    return None
            self._rows = self._begin()
        found: list[Mapping[str, Any]] = []
        deadline = time.monotonic() + self.context.poll_seconds
        for item in self._rows:
            row, offset = item if isinstance(item, tuple) else (item, None)
            self._seen += 1
            if offset is None:
                if self._seen <= self._skip:
                    continue
                offset = {COUNT: self._seen}
            if not isinstance(row, Mapping):
                raise ConnectError(
                    f"the generator gave {row!r}: a dict is needed, or a pair of dict and offset"
                )
            self._offset = dict(offset)
            found.append(row)
            if len(found) >= ROWS_MAX or time.monotonic() >= deadline or self.context.stopping.is_set():
                break
        else:
            self._rows = None
            self._not_before = time.monotonic() + self.context.settings.integer("poll.interval.ms") / 1000
        if not found:
            return None
        assert self._offset is not None
        return Records.of(
            self.context.settings.text("topic"),
            Column.of(found, type(self).schema),
            self._keys(found),
            positions=[(self._partition, self._offset)],
        )

    def _keys(self, rows: list[Mapping[str, Any]]) -> Column | None:
        name = type(self).key
        if name is None:
            return None
        schema = type(self).schema
        return Column.of([row.get(name) for row in rows], None if schema is None else schema.field(name))

    def stop(self) -> None:
        close = getattr(getattr(self, "_rows", None), "close", None)
        if close is not None:
            close()


def parameters_of(function: Callable[..., Any]) -> int:
    """How many arguments a function takes, at most two."""
    return min(2, len(inspect.signature(function).parameters))


def made(name: str, function: Callable[..., Any], kind: str, config: ConfigDef, task: type[Any]) -> Any:
    fields = {
        "__module__": function.__module__,
        "__doc__": function.__doc__,
        "__qualname__": name,
        "KIND": kind,
        "CONFIG": config,
        "task": task,
        "function": staticmethod(function),
    }
    return type(name, (FunctionConnector,), fields)


@overload
def sink(function: Callable[..., Any], /) -> type[FunctionConnector]: ...
@overload
def sink(*, config: ConfigDef | None = None) -> Callable[[Callable[..., Any]], type[FunctionConnector]]: ...
def sink(function: Callable[..., Any] | None = None, /, *, config: ConfigDef | None = None) -> Any:
    """A sink connector from `def name(frame, batch)`: called with each bounded range of the topics."""

    def make(each: Callable[..., Any]) -> type[FunctionConnector]:
        task = type(each.__name__ + "Task", (FunctionSink,), {"function": staticmethod(each)})
        found: type[FunctionConnector] = made(each.__name__, each, SINK, config or ConfigDef(), task)
        return found

    return make if function is None else make(function)


def frame_source(
    *, topic: str | None = None, key: str | None = None, config: ConfigDef | None = None
) -> Callable[[Callable[..., Any]], type[FunctionConnector]]:
    """A source connector on Spark from `def name(spark, context, offset)`; each parameter may be left out.

    It returns the next rows, a bounded number of them, as a DataFrame, and the offset (a dict) that they
    reach; or None if there is nothing new. Columns are the fields of the value, `key` names the one that
    is the key as well; a frame with a column `value` has the columns of `Slice`.
    """

    def make(each: Callable[..., Any]) -> type[FunctionConnector]:
        task = type(each.__name__ + "Task", (FrameSource,), {"function": staticmethod(each), "key": key})
        found: type[FunctionConnector] = made(each.__name__, each, SOURCE, with_topic(config, topic), task)
        return found

    return make


def with_topic(config: ConfigDef | None, topic: str | None) -> ConfigDef:
    """The settings of a source with those that all sources of functions have."""
    settings = (config or ConfigDef()).copy()
    settings.define("topic", "STRING", REQUIRED if topic is None else topic, "HIGH", "The topic to write to")
    return settings.define(
        "poll.interval.ms", "LONG", 5000, "MEDIUM",
        "How long to wait before a function that had nothing new is called again", validator=at_least(0),
    )  # fmt: skip


@overload
def source(function: Callable[..., Any], /) -> type[FunctionConnector]: ...
@overload
def source(
    *,
    topic: str | None = None,
    key: str | None = None,
    schema: Schema | None = None,
    config: ConfigDef | None = None,
) -> Callable[[Callable[..., Any]], type[FunctionConnector]]: ...
def source(
    function: Callable[..., Any] | None = None,
    /,
    *,
    topic: str | None = None,
    key: str | None = None,
    schema: Schema | None = None,
    config: ConfigDef | None = None,
) -> Any:
    """A source connector from a generator of dicts: `def name(context, offset)`, both may be left out.

    It yields rows, or pairs of a row and the offset (a dict) that is reached with it. `offset` is the last
    stored one, or None. Without offsets of its own the rows are counted, and a new start skips that many.
    """

    def make(each: Callable[..., Any]) -> type[FunctionConnector]:
        fields = {"function": staticmethod(each), "schema": schema, "key": key}
        task = type(each.__name__ + "Task", (FunctionSource,), fields)
        found: type[FunctionConnector] = made(each.__name__, each, SOURCE, with_topic(config, topic), task)
        return found

    return make if function is None else make(function)


__all__ = [
    "FrameSource",
    "FunctionConnector",
    "FunctionSink",
    "FunctionSource",
    "frame_source",
    "sink",
    "source",
]

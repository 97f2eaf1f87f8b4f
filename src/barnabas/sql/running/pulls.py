"""Pull queries: rows of tables, as their topics have them at the moment of the question.

In: what a pull query reads. Out: rows. The topic of a table has every row that a batch has committed, so each
node answers for every table, wherever its query runs. A view keeps a topic's rows in pages of a file, and is
made when a table is first asked for. Does not know: statements, how tables come about.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from barnabas.plans.nodes import Source, TableSource
from barnabas.plans.plan import Plan
from barnabas.plans.serdes import FromBytes, Serde, ToBytes
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import Windowed
from barnabas.sql.analysis.pulls import puller
from barnabas.sql.analysis.stages import dsl_windows
from barnabas.sql.analysis.work import PullRead, QueryWork, Range, TopicRows
from barnabas.sql.errors import SqlError
from barnabas.sql.formats.contract import BadBytes
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.formats.serdes import ColumnsSerde
from barnabas.sql.metastore.schemas import WindowedKeys
from barnabas.sql.running.pull_spans import spans_of, windows_of
from barnabas.sql.running.settings import EngineSettings
from barnabas.streams.serdes.formats import WindowedSerde
from barnabas.streams.views.rows import NotReady, Row, ViewError
from barnabas.streams.views.state_view import StateView

VIEWS_MAX = 100
ROWS_MAX = 1_000_000  # of one answer
STORE = "table"


@dataclass(frozen=True)
class Lenient:
    """A serde that reads what it cannot read as null: one bad record must not hide a table."""

    inner: Serde

    @property
    def format(self) -> str:
        return self.inner.format

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        return self.inner.serializer(topic, is_key)

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        read = self.inner.deserializer(topic, is_key)

        def read_or_null(data: bytes) -> Any:
            try:
                return read(data)
            except (BadBytes, ValueError, ArithmeticError, LookupError, struct.error):
                return None

        return read_or_null


class TableView:
    """The rows of one table's topic."""

    def __init__(self, table: TopicRows, settings: EngineSettings) -> None:
        keys = ColumnsSerde(table.key_format, table.schema.key, True, settings.registry)
        self._write_key = keys.serializer(table.topic, True)
        self._is_windowed = table.window is not None
        key_serde = keys if table.window is None else windowed(keys, table.window)
        self._view = StateView(
            view_plan(table, Lenient(key_serde), settings.registry), settings.client, stores=[STORE]
        )

    def rows(self, read: PullRead) -> Iterator[Row]:
        """Rows that the lookup finds, as the caller gets to them; more than the condition asks for may be
        among them."""
        try:
            for row in self._found(read):
                if row.key is None or row.value is None:
                    continue  # it could not be read
                if not isinstance(row.key, Windowed) or in_windows(read, row.key):
                    yield row
        except NotReady as error:
            raise SqlError(f"The table {read.table.name} cannot be read yet: {error}") from error
        except ViewError as error:
            raise SqlError(str(error)) from error

    def _found(self, read: PullRead) -> Iterator[Row]:
        if read.keys is None:
            for span in spans_of(read):
                yield from self._view.scan(STORE, *span)
        for key in dict.fromkeys(read.keys or ()):
            if not self._is_windowed:
                yield from self._view.get(STORE, key).rows
                continue
            for row in self._view.scan(STORE, *windows_of(read, self._write_key(key))):
                if isinstance(row.key, Windowed) and row.key.key == key:
                    yield row

    def close(self) -> None:
        self._view.close()


def windowed(keys: ColumnsSerde, window: WindowedKeys) -> WindowedSerde:
    return WindowedSerde(keys, dsl_windows(window))


def view_plan(table: TopicRows, keys: Serde, registry: RegistryPlace) -> Plan:
    """A plan with the table as its only store: its topic is the changelog."""
    values = Lenient(ColumnsSerde(table.value_format, table.schema.value, False, registry))
    source = Source(name="source", topics=(table.topic,), key_serde=keys, value_serde=values)
    store = StoreSpec(STORE, StoreKind.TIMESTAMPED, keys, values, source_topic=table.topic)
    if table.window is not None and table.window.retention_ms is not None:
        store = replace(
            store,
            kind=StoreKind.WINDOWED_TABLE,
            retention_ms=table.window.retention_ms,
            window_size_ms=table.window.size_ms or 0,
        )
    nodes = (source, TableSource(name="table", parents=("source",), store=STORE))
    return Plan(nodes, {STORE: store}, application_id=f"view-of-{table.topic}")


def in_windows(read: PullRead, key: Windowed) -> bool:
    return is_within(read.window_start, key.start) and is_within(read.window_end, key.end)


def is_within(wanted: Range, value: Any) -> bool:
    low, high = wanted.low, wanted.high
    if low is not None and not (value > low.value or (low.is_inclusive and value == low.value)):
        return False
    return high is None or value < high.value or (high.is_inclusive and value == high.value)


class Pulls:
    """Views of tables by topic. Threads may share it."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._views: OrderedDict[Any, TableView] = OrderedDict()
        self._lock = threading.Lock()

    def rows(self, work: QueryWork) -> list[list[Any]]:
        assert work.pull is not None
        read = work.pull
        pull = puller(read)
        found: list[list[Any]] = []
        for row in self._view(read.table).rows(read) if read.limit != 0 else ():
            columns = pull(row.key, row.value, row.timestamp)
            if columns is None:
                continue
            if len(found) == ROWS_MAX:
                raise SqlError(f"The pull query finds more than {ROWS_MAX} rows: give it a key or a LIMIT")
            found.append(columns)
            if len(found) == read.limit:
                break
        return found

    def _view(self, table: TopicRows) -> TableView:
        place = (
            table.topic,
            table.schema,
            table.window,
            str(table.key_format),
            str(table.value_format),
            table.value_format.is_wrapped,
        )
        with self._lock:
            view = self._views.get(place)
            if view is None:
                view = self._views[place] = TableView(table, self._settings)
                while len(self._views) > VIEWS_MAX:
                    _, oldest = self._views.popitem(last=False)
                    oldest.close()
            self._views.move_to_end(place)
            return view

    def close(self) -> None:
        with self._lock:
            for view in self._views.values():
                view.close()
            self._views.clear()

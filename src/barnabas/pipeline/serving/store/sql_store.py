"""A store in an SQL database: transactions around updates, and answers from the merged tables.

In: parts, queries, statements. Out: states and answers. `DuckDBStore` and `PostgresStore` make the
transactions. Writers of a view take turns; a reader sees a view before or after a part, never in between.
Does not know: which database it is, HTTP.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import pyarrow as pa

from barnabas.pipeline.serving.store import catalog, selecting, statements, view_updates
from barnabas.pipeline.serving.store.catalog import Moment, ViewEntry
from barnabas.pipeline.serving.store.port import Answer, Freshness, Limits, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest, Query, bind
from barnabas.pipeline.serving.store.transaction import Dialect, Missing, Transaction
from barnabas.pipeline.serving.store.view_updates import Updates
from barnabas.pipeline.views.layout import Column, Role
from barnabas.pipeline.views.part_files import LakeParts
from barnabas.pipeline.views.parts import BatchPart, Joined, SpeedPart, ViewState

TRIES = 5
T = TypeVar("T")


class SqlStore(ABC):
    """See `serving.store.port.Store`."""

    dialect: Dialect

    def __init__(self, keep_horizons: int, limits: Limits, lake: LakeParts) -> None:
        self._keep_horizons = keep_horizons
        self._limits = limits
        self._lake = lake
        self._writing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by view
        self._checked: dict[str, tuple[int, datetime]] = {}

    @abstractmethod
    def writing(self, view: str) -> AbstractContextManager[Transaction]:
        """A transaction that changes a view; committed at the end of the block, or rolled back."""

    @abstractmethod
    def reading(self, *, bounded_ms: int) -> AbstractContextManager[Transaction]:
        """A read-only transaction on one state of the store, with a time limit."""

    @abstractmethod
    def close(self) -> None: ...

    def state(self, view: str) -> ViewState | None:
        with self.reading(bounded_ms=self._limits.statement_ms_max) as transaction:
            entry = self._find(transaction, view)
            return entry.state if entry else None

    def states(self) -> list[ViewState]:
        with self.reading(bounded_ms=self._limits.statement_ms_max) as transaction:
            return [entry.state for entry in self._entries(transaction)]

    def announce(self, view: str, fingerprint: str, horizon: int, joined: Joined | None = None) -> None:
        with self._updating(view) as updates:
            updates.announce(view, fingerprint, horizon, joined or {})

    def put_batch(self, part: BatchPart) -> ViewState:
        with self._updating(part.layout.view) as updates:
            return updates.put_batch(part).state

    def put_speed(self, part: SpeedPart) -> ViewState:
        with self._updating(part.layout.view) as updates:
            return updates.put_speed(part).state

    @contextmanager
    def _updating(self, view: str) -> Iterator[Updates]:
        with self._writing[view], self.writing(view) as transaction:
            yield Updates(transaction, self.dialect, self._lake, self._keep_horizons)

    def checked(self, view: str, version: int, at: datetime) -> None:
        # Kept in memory: it is called every second for each view, and again soon after a restart.
        self._checked[view] = (version, at)

    def _find(self, transaction: Transaction, view: str) -> ViewEntry | None:
        entry = catalog.find(transaction, view)
        return self._with_check(entry) if entry else None

    def _entries(self, transaction: Transaction) -> list[ViewEntry]:
        return list(map(self._with_check, catalog.entries(transaction)))

    def _with_check(self, entry: ViewEntry) -> ViewEntry:
        version, at = self._checked.get(entry.layout.view, (-1, entry.checked_at))
        if version != entry.position.version or at <= entry.checked_at:
            return entry
        return replace(entry, checked_at=at)

    def drop(self, view: str) -> None:
        with self._writing[view], self.writing(view) as transaction:
            entry = catalog.find(transaction, view)
            if entry is not None:
                view_updates.drop_tables(transaction, entry.tables)
                catalog.forget(transaction, view)

    def answer(self, query: Query) -> Answer:
        return self._read(lambda transaction: self._answer(transaction, query))

    def sql(self, statement: str, as_of: int | datetime | None = None) -> Answer:
        return self._read(lambda transaction: self._sql(transaction, statement, as_of))

    def _read(self, ask: Callable[[Transaction], T]) -> T:
        for left in reversed(range(TRIES)):
            try:
                with self.reading(bounded_ms=self._limits.statement_ms_max) as transaction:
                    return ask(transaction)
            except Missing as problem:
                if not left:
                    raise BadRequest(f"the store says: {str(problem).splitlines()[0]}") from None
        raise AssertionError("unreachable")

    def _answer(self, transaction: Transaction, query: Query) -> Answer:
        entry = self._find(transaction, query.view)
        if entry is None:
            there = ", ".join(entry.layout.view for entry in self._entries(transaction)) or "none yet"
            raise UnknownView(f"there is no view {query.view!r}: there are {there}")
        bound = bind(query, entry.layout)
        moment = moment_of(transaction, entry, query.as_of)
        rows_max = min(query.limit, self._limits.rows_max)
        sql, values = selecting.select(self.dialect, entry, bound, moment, rows_max + 1, query.offset)
        schema = pa.schema([(column.name, column.arrow) for column in bound.columns])
        rows = transaction.table(sql, schema, *values)
        return Answer(
            bound.columns, rows.slice(0, rows_max), rows.num_rows > rows_max, (freshness_of(entry, moment),)
        )

    def _sql(self, transaction: Transaction, statement: str, as_of: int | datetime | None) -> Answer:
        if len(statement) > self._limits.sql_chars_max:
            raise BadRequest(
                f"the statement has {len(statement)} characters: at most {self._limits.sql_chars_max}"
            )
        entries = {entry.layout.view: entry for entry in self._entries(transaction)}
        checked = statements.check(statement, self.dialect.name, entries)
        moments = {view: moment_of(transaction, entries[view], as_of) for view in checked.views}
        sources = {
            view: selecting.source(self.dialect, entries[view], entries[view].layout.visible, moments[view])
            for view in checked.views
        }
        rows = transaction.table(checked.over(sources, self._limits.rows_max + 1), None)
        columns = tuple(Column(field.name, type_name(field.type), Role.MEASURE) for field in rows.schema)
        cut = rows.num_rows > self._limits.rows_max
        fresh = tuple(freshness_of(entries[view], moments[view]) for view in checked.views)
        return Answer(columns, rows.slice(0, self._limits.rows_max), cut, fresh)


def moment_of(transaction: Transaction, entry: ViewEntry, as_of: int | datetime | None) -> Moment | None:
    """The moment for time travel; None for now."""
    if as_of is None:
        return None
    view = entry.layout.view
    if isinstance(as_of, datetime):
        if as_of >= entry.position.at:
            return None
        version = catalog.version_at(transaction, view, as_of)
        if version is None or version < entry.oldest:
            raise BadRequest(
                f"{as_of.isoformat()} is before what is kept of the view {view}: "
                f"the oldest is version {entry.oldest}"
            )
    else:
        version = as_of
        if version > entry.position.version:
            raise BadRequest(
                f"the view {view} is at version {entry.position.version}, and not at {version} yet"
            )
        if version < entry.oldest:
            raise BadRequest(
                f"version {version} of the view {view} is not kept any more: the oldest is {entry.oldest}"
            )
    return catalog.moment_at(transaction, entry, version)


def freshness_of(entry: ViewEntry, moment: Moment | None) -> Freshness:
    if moment is None:
        return Freshness(entry.layout.view, entry.horizon, entry.position, entry.checked_at)
    return Freshness(entry.layout.view, moment.horizon, moment.position, moment.position.at)


def type_name(type: pa.DataType) -> str:
    """The type name of a column in an answer to SQL."""
    names = {
        pa.int8(): "tinyint",
        pa.int16(): "smallint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.string(): "string",
        pa.binary(): "binary",
    }
    if pa.types.is_timestamp(type):
        return "timestamp" if type.tz else "timestamp_ntz"
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    return names.get(type, str(type))

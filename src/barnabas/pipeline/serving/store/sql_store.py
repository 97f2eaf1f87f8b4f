"""A store in an SQL database: transactions around merging, and answers from the merged tables.

In: parts, queries, statements. Out: states and answers. `DuckDBStore` and `PostgresStore` say how a
transaction is made. Writers come one after another; readers see a view before a part or after it, never
between. Does not know: which database it is, HTTP.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import pyarrow as pa

from barnabas.pipeline.serving.store import catalog, selecting, statements, view_updates
from barnabas.pipeline.serving.store.catalog import Entry, Moment
from barnabas.pipeline.serving.store.port import Answer, Freshness, Limits, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest, Query, bind
from barnabas.pipeline.serving.store.session import Dialect, Missing, Session
from barnabas.pipeline.views.layout import Column, Role
from barnabas.pipeline.views.parts import BatchPart, SpeedPart, ViewState

TRIES = 5
T = TypeVar("T")


class SqlStore(ABC):
    """See `serving.store.Store`."""

    dialect: Dialect

    def __init__(self, keep_horizons: int, limits: Limits) -> None:
        self._keep_horizons = keep_horizons
        self._limits = limits
        self._writing = threading.Lock()
        self._checked: dict[str, tuple[int, datetime]] = {}

    @abstractmethod
    def writing(self) -> AbstractContextManager[Session]:
        """A transaction that is committed at the end, or not at all."""

    @abstractmethod
    def reading(self, *, bounded_ms: int) -> AbstractContextManager[Session]:
        """A transaction that sees one state of everything, changes nothing and ends in bounded time."""

    @abstractmethod
    def close(self) -> None: ...

    def state(self, view: str) -> ViewState | None:
        with self.reading(bounded_ms=self._limits.statement_ms_max) as session:
            entry = self._find(session, view)
            return entry.state if entry else None

    def states(self) -> list[ViewState]:
        with self.reading(bounded_ms=self._limits.statement_ms_max) as session:
            return [entry.state for entry in self._entries(session)]

    def announce(self, view: str, fingerprint: str, horizon: int) -> None:
        with self._writing, self.writing() as session:
            view_updates.announce(session, view, fingerprint, horizon)

    def put_batch(self, part: BatchPart) -> ViewState:
        with self._writing, self.writing() as session:
            return view_updates.put_batch(session, self.dialect, part, self._keep_horizons).state

    def put_speed(self, part: SpeedPart) -> ViewState:
        with self._writing, self.writing() as session:
            return view_updates.put_speed(session, part, self._keep_horizons).state

    def checked(self, view: str, version: int, at: datetime) -> None:
        # Kept in memory: it comes every second for each view, and after a restart somebody looks anew.
        self._checked[view] = (version, at)

    def _find(self, session: Session, view: str) -> Entry | None:
        entry = catalog.find(session, view)
        return self._with_check(entry) if entry else None

    def _entries(self, session: Session) -> list[Entry]:
        return list(map(self._with_check, catalog.entries(session)))

    def _with_check(self, entry: Entry) -> Entry:
        version, at = self._checked.get(entry.layout.view, (-1, entry.checked_at))
        if version != entry.position.version or at <= entry.checked_at:
            return entry
        return replace(entry, checked_at=at)

    def drop(self, view: str) -> None:
        with self._writing, self.writing() as session:
            entry = catalog.find(session, view)
            if entry is not None:
                view_updates.drop_tables(session, entry.tables)
                catalog.forget(session, view)

    def answer(self, query: Query) -> Answer:
        return self._read(lambda session: self._answer(session, query))

    def sql(self, statement: str, as_of: int | datetime | None = None) -> Answer:
        return self._read(lambda session: self._sql(session, statement, as_of))

    def _read(self, ask: Callable[[Session], T]) -> T:
        for left in reversed(range(TRIES)):
            try:
                with self.reading(bounded_ms=self._limits.statement_ms_max) as session:
                    return ask(session)
            except Missing as problem:
                if not left:
                    raise BadRequest(f"the store says: {str(problem).splitlines()[0]}") from None
        raise AssertionError("unreachable")

    def _answer(self, session: Session, query: Query) -> Answer:
        entry = self._find(session, query.view)
        if entry is None:
            there = ", ".join(entry.layout.view for entry in self._entries(session)) or "none yet"
            raise UnknownView(f"there is no view {query.view!r}: there are {there}")
        bound = bind(query, entry.layout)
        moment = moment_of(session, entry, query.as_of)
        rows_max = min(query.limit, self._limits.rows_max)
        sql, values = selecting.select(self.dialect, entry, bound, moment, rows_max + 1, query.offset)
        schema = pa.schema([(column.name, column.arrow) for column in bound.columns])
        rows = session.table(sql, schema, *values)
        return Answer(
            bound.columns, rows.slice(0, rows_max), rows.num_rows > rows_max, (freshness_of(entry, moment),)
        )

    def _sql(self, session: Session, statement: str, as_of: int | datetime | None) -> Answer:
        if len(statement) > self._limits.sql_chars_max:
            raise BadRequest(
                f"the statement has {len(statement)} characters: at most {self._limits.sql_chars_max}"
            )
        entries = {entry.layout.view: entry for entry in self._entries(session)}
        checked = statements.check(statement, self.dialect.name, entries)
        moments = {view: moment_of(session, entries[view], as_of) for view in checked.views}
        sources = {
            view: selecting.source(self.dialect, entries[view], entries[view].layout.visible, moments[view])
            for view in checked.views
        }
        rows = session.table(checked.over(sources, self._limits.rows_max + 1), None)
        columns = tuple(Column(field.name, type_name(field.type), Role.MEASURE) for field in rows.schema)
        cut = rows.num_rows > self._limits.rows_max
        fresh = tuple(freshness_of(entries[view], moments[view]) for view in checked.views)
        return Answer(columns, rows.slice(0, self._limits.rows_max), cut, fresh)


def moment_of(session: Session, entry: Entry, as_of: int | datetime | None) -> Moment | None:
    """None: now."""
    if as_of is None:
        return None
    view = entry.layout.view
    if isinstance(as_of, datetime):
        if as_of >= entry.position.at:
            return None
        version = catalog.version_at(session, view, as_of)
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
    return catalog.moment_at(session, entry, version)


def freshness_of(entry: Entry, moment: Moment | None) -> Freshness:
    if moment is None:
        return Freshness(entry.layout.view, entry.horizon, entry.position, entry.checked_at)
    return Freshness(entry.layout.view, moment.horizon, moment.position, moment.position.at)


def type_name(type: pa.DataType) -> str:
    """What a column of an answer to free SQL is called."""
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

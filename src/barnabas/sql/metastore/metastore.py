"""The metastore: streams, tables, types and persistent queries, and who refers to whom.

Pure: a `Metastore` is a value. Analysis of a statement gives `Change`s; `apply` gives the next metastore, or
raises `SqlError` where a change is not possible: a name twice, a source that queries read or write (the error
names them). Does not know: topics, how queries run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from barnabas.sql.errors import Position, SqlError, did_you_mean
from barnabas.sql.metastore.schemas import Format, Schema, TimestampColumn, WindowedKeys
from barnabas.sql.types.sql_types import SqlType

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class DataSource:
    """A stream or table over a topic. `made_by` is the CREATE … AS SELECT query that writes it. `is_source`:
    made by CREATE SOURCE, so nothing may write it."""

    name: str
    is_table: bool
    schema: Schema
    topic: str
    key_format: Format
    value_format: Format
    window: WindowedKeys | None = None
    timestamp: TimestampColumn | None = None
    is_source: bool = False
    statement: str = ""
    made_by: str | None = None

    @property
    def kind(self) -> str:
        return "Table" if self.is_table else "Stream"


@dataclass(frozen=True, slots=True)
class QueryEntry:
    """A persistent query. `kind` is CREATE_AS or INSERT. `sources` are the streams and tables that it reads,
    `sink` is the one that it writes; a CREATE SOURCE TABLE has a query without a sink."""

    query_id: str
    kind: str
    statement: str
    sources: tuple[str, ...]
    sink: str | None
    sink_topic: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class PutSource:
    source: DataSource
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class RemoveSource:
    """Drops a stream or table, and the CREATE … AS query that writes it."""

    name: str


@dataclass(frozen=True, slots=True)
class PutType:
    name: str
    kind: SqlType


@dataclass(frozen=True, slots=True)
class RemoveType:
    name: str


@dataclass(frozen=True, slots=True)
class PutQuery:
    query: QueryEntry


@dataclass(frozen=True, slots=True)
class RemoveQuery:
    query_id: str


Change = PutSource | RemoveSource | PutType | RemoveType | PutQuery | RemoveQuery


@dataclass(frozen=True, slots=True)
class Metastore:
    """Names are as statements have them after parsing: upper case unless they were quoted."""

    sources: Mapping[str, DataSource] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, SqlType] = field(default_factory=lambda: MappingProxyType({}))
    queries: Mapping[str, QueryEntry] = field(default_factory=lambda: MappingProxyType({}))

    def source(self, name: str, at: Position | None = None) -> DataSource:
        """SqlError with the nearest name for an unknown one."""
        found = self.sources.get(name)
        if found is None:
            raise SqlError(f"{name} does not exist.{did_you_mean(name, self.sources)}", at)
        return found

    def query(self, query_id: str, at: Position | None = None) -> QueryEntry:
        found = self.queries.get(query_id)
        if found is None:
            raise SqlError(f"Unknown queryId: {query_id}.{did_you_mean(query_id, self.queries)}", at)
        return found

    def readers(self, name: str) -> tuple[str, ...]:
        """Ids of the queries that read a source."""
        return tuple(each.query_id for each in self.queries.values() if name in each.sources)

    def writers(self, name: str) -> tuple[str, ...]:
        """Ids of the queries that write a source."""
        return tuple(each.query_id for each in self.queries.values() if each.sink == name)

    def ended_by_drop(self, name: str) -> tuple[str, ...]:
        """Queries that end when a source is dropped: the one that made it, and the one that keeps a source
        table."""
        source = self.sources[name]
        own = [each for each in self.writers(name) if each == source.made_by]
        kept = [each for each in self.readers(name) if self.queries[each].sink is None]
        return (*own, *kept)

    def check_drop(self, name: str) -> None:
        """SqlError with the names of the queries that still read or write a source."""
        ending = self.ended_by_drop(name)
        readers = [each for each in self.readers(name) if each not in ending]
        writers = [each for each in self.writers(name) if each not in ending]
        if readers or writers:
            raise SqlError(
                f"Cannot drop {name}.\n"
                f"The following queries read from this source: [{', '.join(readers)}].\n"
                f"The following queries write into this source: [{', '.join(writers)}].\n"
                f"You need to terminate them before dropping {name}."
            )

    def apply(self, changes: Iterable[Change]) -> Metastore:
        found = self
        for change in changes:
            found = found._applied(change)
        return found

    def _applied(self, change: Change) -> Metastore:
        if isinstance(change, PutSource):
            return self._put_source(change)
        if isinstance(change, RemoveSource):
            self.source(change.name)
            self.check_drop(change.name)
            ending = self.ended_by_drop(change.name)
            return replace(
                self,
                sources=_without(self.sources, change.name),
                queries=_without(self.queries, *ending),
            )
        if isinstance(change, PutType):
            if change.name in self.types:
                raise SqlError(
                    f"Cannot register custom type '{change.name}' since it is already registered with type: "
                    f"{self.types[change.name]}"
                )
            return replace(self, types=_with(self.types, change.name, change.kind))
        if isinstance(change, RemoveType):
            if change.name not in self.types:
                raise SqlError(f"Type {change.name} does not exist.{did_you_mean(change.name, self.types)}")
            return replace(self, types=_without(self.types, change.name))
        if isinstance(change, PutQuery):
            entry = change.query
            return replace(self, queries=_with(self.queries, entry.query_id, entry))
        self.query(change.query_id)
        return replace(self, queries=_without(self.queries, change.query_id))

    def _put_source(self, change: PutSource) -> Metastore:
        source = change.source
        before = self.sources.get(source.name)
        if before is not None and not change.replaces:
            raise SqlError(
                f"Cannot add {source.kind.lower()} '{source.name}': "
                f"A {before.kind.lower()} with the same name already exists"
            )
        return replace(self, sources=_with(self.sources, source.name, source))


def _with(found: Mapping[str, V], name: str, value: V) -> Mapping[str, V]:
    return MappingProxyType({**found, name: value})


def _without(found: Mapping[str, V], *names: str) -> Mapping[str, V]:
    return MappingProxyType({name: value for name, value in found.items() if name not in names})

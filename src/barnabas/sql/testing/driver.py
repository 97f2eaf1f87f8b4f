"""SqlTestDriver: statements and rows in, rows out, in this process, without a broker and without Spark.

    driver = SqlTestDriver(
        "CREATE STREAM clicks (user STRING KEY, page STRING) WITH (KAFKA_TOPIC='clicks', PARTITIONS=1, ...);",
        "CREATE TABLE pages AS SELECT page, COUNT(*) AS n FROM clicks GROUP BY page;",
    )
    driver.pipe("CLICKS", {"USER": "ann", "PAGE": "home"}, timestamp=1000)
    assert driver.table("PAGES") == {("home",): {"N": 1}}

Statements are analyzed as a server does it, and their plans run record by record. Topics have one partition
and are read from their beginning. Rows are Python values by column, and go through their formats; those of a
registry are replaced by bytes that keep every value, unless `formats` gives their code. Does not know:
threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.plans.interpreter.records import Failure, Headers, Problem
from barnabas.plans.interpreter.task import Handlers
from barnabas.plans.serdes import Serde
from barnabas.plans.windows import Windowed
from barnabas.sql.analysis.analyzer import analyze, lookups_of
from barnabas.sql.analysis.facts import Facts, InferredSchema, SchemaLookup, TopicFact
from barnabas.sql.analysis.options import FORMATS
from barnabas.sql.analysis.pulls import puller
from barnabas.sql.analysis.serdes import ROW_BYTES, MakeSerde, RowSerde, bind
from barnabas.sql.analysis.stages import key_serde, rows_of
from barnabas.sql.analysis.work import RESULT_TOPIC, QueryWork, TopicRows, WorkKind, result_row
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.execution.port import Prepared, Row
from barnabas.sql.formats.serdes import ColumnsSerde
from barnabas.sql.metastore.metastore import Metastore, RemoveQuery
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.splitting import split
from barnabas.sql.syntax.statements import ControlQuery, SetProperty, UnsetProperty
from barnabas.streams.testing.driver import TestDriver

HOPS_MAX = 100_000  # records that one record may lead to


@dataclass(frozen=True)
class TestRow:
    """A record of a stream's or table's topic. `value` None is a tombstone; `window` is (start, end)."""

    __test__ = False

    key: dict[str, Any] | None
    value: dict[str, Any] | None
    timestamp: int
    window: tuple[int, int] | None = None
    headers: Headers = ()

    @property
    def columns(self) -> dict[str, Any]:
        """Key and value columns in one dict."""
        return {**(self.key or {}), **(self.value or {})}


@dataclass(frozen=True)
class _Record:
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


@dataclass
class _Running:
    """A query with the driver of its plan."""

    work: QueryWork
    driver: TestDriver
    topics: frozenset[str]


def plain_formats(named: RowSerde) -> Serde:
    """The code of formats without a registry; other rows are written as they are."""
    if FORMATS[named.row_format.name].registry:
        return ROW_BYTES
    return ColumnsSerde(named.row_format, named.columns, named.is_key)


class PushRows:
    """The rows of a push query so far. `end` is True when its LIMIT was reached."""

    def __init__(self, work: QueryWork) -> None:
        assert work.result is not None
        self.schema, self._limit = work.result.schema, work.result.limit
        self.rows: list[Row] = []

    @property
    def end(self) -> bool:
        return self._limit is not None and len(self.rows) >= self._limit

    def add(self, row: Row) -> None:
        if not self.end:
            self.rows.append(row)

    def read(self) -> list[list[Any]]:
        """Values of the rows that were not read yet."""
        taken, self.rows = self.rows, []
        if self._limit is not None:
            self._limit -= len(taken)
        return [row.values for row in taken]

    def __iter__(self) -> Iterator[list[Any]]:
        return iter([row.values for row in self.rows])


class SqlTestDriver:
    """Runs statements. `schemas` stands in for a registry; `problems` has what would be in the processing
    log: failures of records, and expressions without a value."""

    __test__ = False

    def __init__(
        self,
        *statements: str,
        settings: Mapping[str, str] | None = None,
        schemas: Mapping[SchemaLookup, InferredSchema] | None = None,
        formats: MakeSerde | None = None,
        now_ms: int = 0,
    ) -> None:
        self.metastore = Metastore()
        self.settings = {"ksql.persistence.default.format.value": "JSON", **(settings or {})}
        self.schemas, self.now_ms = dict(schemas or {}), now_ms
        self.topics: dict[str, TopicFact] = {}
        self.problems: list[Problem | Failure] = []
        self.properties: dict[str, str] = {}
        self._make: MakeSerde = formats or plain_formats
        self._log: list[_Record] = []
        self._read: dict[str, int] = {}
        self._queries: dict[str, _Running] = {}
        self._pushes: dict[str, PushRows] = {}
        self._number = 0
        self._handlers = Handlers(self._failed, self._failed, self._failed, self.problems.append)
        for text in statements:
            self.run(text)

    def _failed(self, failure: Failure) -> Any:
        self.problems.append(failure)
        return "continue"

    # --------------------------------------------------------------------------------------- statements

    def prepare(self, text: str) -> Prepared:
        """Analyze one statement, without any effect."""
        statement = parse_statement(text)
        needed = lookups_of(statement, self.metastore, self.settings, self.properties)
        facts = Facts(
            {name: self.topics[name] for name in needed.topics if name in self.topics},
            {each: self.schemas[each] for each in needed.schemas if each in self.schemas},
            self.settings,
            self.now_ms,
        )
        return analyze(statement, text, self.metastore, facts, self.properties, self._number)

    def run(self, text: str) -> list[Prepared]:
        """Carry out statements, one after the other."""
        done = []
        for part in split(text):
            statement = parse_statement(part.text)
            if isinstance(statement, SetProperty):
                self.properties[statement.name] = statement.value
            elif isinstance(statement, UnsetProperty):
                self.properties.pop(statement.name, None)
            elif isinstance(statement, ControlQuery):
                self._control(statement)
            else:
                done.append(self._carry_out(part.text))
        return done

    def _control(self, statement: ControlQuery) -> None:
        if statement.action != "TERMINATE":
            raise SqlError(f"the test driver has no {statement.action}", statement.at)
        ids = [statement.query_id] if statement.query_id is not None else list(self.metastore.queries)
        for query_id in ids:
            assert query_id is not None
            self.metastore = self.metastore.apply([RemoveQuery(query_id)])
            self._queries.pop(query_id, None)

    def _carry_out(self, text: str) -> Prepared:
        prepared = self.prepare(text)
        self._number += 1
        for topic in prepared.topics:
            self.topics[topic.name] = TopicFact(topic.name, topic.partitions, topic.replicas or 1)
        self.metastore = self.metastore.apply(prepared.changes)
        for query_id in prepared.stops:
            self._queries.pop(query_id, None)
        for name in prepared.drops_topics:
            self.topics.pop(name, None)
            self._log = [record for record in self._log if record.topic != name]
        work = prepared.work
        if work is not None and work.kind == WorkKind.PERSISTENT:
            self._start(work)
        elif work is not None and work.insert is not None:
            row = work.insert
            self._write(row.target, row.key, row.value, row.timestamp_ms)
        return prepared

    def _start(self, work: QueryWork) -> None:
        assert work.plan is not None and work.query_id is not None
        driver = TestDriver(bind(work.plan, self._make), handlers=self._handlers, now_ms=self.now_ms)
        running = _Running(work, driver, frozenset(each.topic for each in work.sources))
        before = self._queries.get(work.query_id)
        self._queries[work.query_id] = running
        if before is not None:  # a changed query goes on where it is, with its state
            for old, new in zip(before.driver.tasks, driver.tasks, strict=False):
                new.backend.pages.update(old.backend.pages)  # type: ignore[attr-defined]
            return
        for record in list(self._log):
            if record.topic in running.topics:
                self._settle(self._fed(running, record))

    def push(self, text: str) -> PushRows:
        """Start a push query, or read a stream to its end: rows gather in what it gives."""
        prepared = self.prepare(text)
        work = prepared.work
        if work is None or work.plan is None or work.result is None:
            raise SqlError("push takes a SELECT with EMIT CHANGES, or one on a stream")
        rows = PushRows(work)
        query_id = f"{work.query_id}_{len(self._pushes)}"
        self._pushes[query_id] = rows
        driver = TestDriver(bind(work.plan, self._make), handlers=self._handlers, now_ms=self.now_ms)
        running = _Running(work, driver, frozenset(each.topic for each in work.sources))
        for record in list(self._log):
            if record.topic in running.topics:
                self._fed(running, record)
        self._collect(query_id, running)
        if work.kind == WorkKind.PUSH:
            self._queries[query_id] = running
        return rows

    def _collect(self, query_id: str, running: _Running) -> None:
        assert running.work.result is not None
        for each in running.driver.written.pop(RESULT_TOPIC, []):
            key = None if each.key is None else ROW_BYTES.from_bytes(each.key)
            value = None if each.value is None else ROW_BYTES.from_bytes(each.value)
            self._pushes[query_id].add(result_row(running.work.result, key, value))

    def pull(self, text: str) -> list[list[Any]]:
        """The rows of a pull query."""
        prepared = self.prepare(text)
        read = prepared.work.pull if prepared.work is not None else None
        if read is None:
            raise SqlError("pull takes a SELECT on a table without EMIT")
        row_of, found = puller(read, self._report), []
        for key, value, timestamp in self._current(read.table).values():
            plain = key.key if isinstance(key, Windowed) else key
            if read.keys is not None and plain not in read.keys:
                continue
            row = row_of(key, value, timestamp)
            if row is not None:
                found.append(row)
        return found if prepared.limit is None else found[: prepared.limit]

    def _report(self, logger: str, message: str, error: Exception) -> None:
        self.problems.append(Problem(logger, message, f"{type(error).__name__}: {error}", "", 0, -1, -1))

    # ------------------------------------------------------------------------------------------ records

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """A topic that exists before a statement names it."""
        self.topics.setdefault(name, TopicFact(name, partitions))

    def pipe(
        self,
        name: str,
        row: Mapping[str, Any] | None = None,
        *,
        timestamp: int | None = None,
        tombstone: bool = False,
        window: tuple[int, int] | None = None,
        headers: Headers = (),
    ) -> None:
        """Write a record to the topic of a stream or table: its columns by name, key columns among them.

        All that follows from it has happened when this returns."""
        source = self.metastore.source(name)
        given = dict(row or {})
        for column in given:
            if source.schema.find(column) is None:
                known = [each.name for each in source.schema]
                raise SqlError(f"{name} has no column {column}.{did_you_mean(column, known)}")
        key: Any = tuple(given.get(column.name) for column in source.schema.key)
        if not key or (len(key) == 1 and key[0] is None):
            key = None
        if window is not None:
            key = Windowed(key, *window)
        value = None if tombstone else {column.name: given.get(column.name) for column in source.schema.value}
        time = self.now_ms if timestamp is None else timestamp
        self._write(rows_of(source), key, value, time, headers)

    def _write(
        self,
        rows: TopicRows,
        key: Any,
        value: Mapping[str, Any] | None,
        timestamp: int,
        headers: Headers = (),
    ) -> None:
        write_key, _ = self._codes(rows, True)
        write_value, _ = self._codes(rows, False)
        record = _Record(
            rows.topic,
            None if key is None else write_key(key),
            None if value is None else write_value(dict(value)),
            timestamp,
            headers,
        )
        self._settle([record])

    def _codes(self, rows: TopicRows, is_key: bool) -> tuple[Any, Any]:
        """The functions that write and read keys or values of a topic."""
        columns = rows.schema.key if is_key else rows.schema.value
        form = rows.key_format if is_key else rows.value_format
        serde = self._make(RowSerde(form, columns, is_key))
        if is_key and rows.window is not None:
            serde = replace(key_serde(form, columns, rows.window), inner=serde)
        return serde.serializer(rows.topic, is_key), serde.deserializer(rows.topic, is_key)

    def _settle(self, waiting: list[_Record]) -> None:
        """Write records, and those that queries make of them."""
        hops = 0
        while waiting:
            hops += 1
            if hops > HOPS_MAX:
                raise RuntimeError(
                    f"one record led to more than {HOPS_MAX} others: do queries feed themselves?"
                )
            record = waiting.pop(0)
            self._log.append(record)
            for query_id, running in list(self._queries.items()):
                if record.topic in running.topics:
                    waiting += self._fed(running, record)
                    if query_id in self._pushes:
                        self._collect(query_id, running)

    def _fed(self, running: _Running, record: _Record) -> list[_Record]:
        """The records that a query writes to topics because of one record."""
        running.driver.pipe(record.topic, record.key, record.value, record.timestamp, record.headers)
        written = running.driver.written
        return [
            _Record(topic, each.key, each.value, each.timestamp, each.headers)
            for topic in [name for name in written if name != RESULT_TOPIC]
            for each in written.pop(topic)
        ]

    # ------------------------------------------------------------------------------------------- results

    def rows(self, name: str) -> list[TestRow]:
        """Records of a stream's or table's topic that were not read yet."""
        source = self.metastore.source(name)
        records = [record for record in self._log if record.topic == source.topic]
        start = self._read.get(name, 0)
        self._read[name] = len(records)
        return [self._row(rows_of(source), record) for record in records[start:]]

    def _row(self, rows: TopicRows, record: _Record) -> TestRow:
        _, read_key = self._codes(rows, True)
        _, read_value = self._codes(rows, False)
        key = None if record.key is None else read_key(record.key)
        window = (key.start, key.end) if isinstance(key, Windowed) else None
        plain: Sequence[Any] | None = key.key if isinstance(key, Windowed) else key
        named = None
        if plain is not None:
            named = {column.name: each for column, each in zip(rows.schema.key, plain, strict=False)}
        value = None if record.value is None else read_value(record.value)
        return TestRow(named, value, record.timestamp, window, record.headers)

    def values(self, name: str) -> list[dict[str, Any] | None]:
        """Key and value columns of the records that were not read yet; None for tombstones."""
        return [None if row.value is None else row.columns for row in self.rows(name)]

    def table(self, name: str) -> dict[Any, dict[str, Any]]:
        """The table as it is: value columns by key (a tuple, or (tuple, start, end) in windows)."""
        rows = rows_of(self.metastore.source(name))
        return {
            (key.key, key.start, key.end) if isinstance(key, Windowed) else key: value
            for key, value, _ in self._current(rows).values()
        }

    def _current(self, rows: TopicRows) -> dict[bytes, tuple[Any, dict[str, Any], int]]:
        _, read_key = self._codes(rows, True)
        _, read_value = self._codes(rows, False)
        found: dict[bytes, tuple[Any, dict[str, Any], int]] = {}
        for record in self._log:
            if record.topic != rows.topic or record.key is None:
                continue
            found.pop(record.key, None)
            if record.value is not None:
                found[record.key] = (read_key(record.key), read_value(record.value), record.timestamp)
        return found

    def explain(self, query_id: str) -> str:
        """The execution plan and the topology of a query."""
        work = self._queries[query_id].work
        return f"{work.execution_plan}\n{work.topology}"

    def close(self) -> None:
        for running in self._queries.values():
            running.driver.close()

    def __enter__(self) -> SqlTestDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

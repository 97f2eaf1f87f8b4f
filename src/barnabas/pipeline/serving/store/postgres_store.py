"""The store in PostgreSQL, by URL: a schema of its own in a database that may hold others.

In: the URL and the pipeline's name. Out: a `Store`. Queries run in read-only transactions with a time limit.
Does not know: views.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolTimeout
from pyarrow import csv

from barnabas.pipeline.serving.store import catalog
from barnabas.pipeline.serving.store.port import Limits, StoreError
from barnabas.pipeline.serving.store.query import BadRequest
from barnabas.pipeline.serving.store.sql_store import SqlStore
from barnabas.pipeline.serving.store.transaction import KEY, TO, Missing, Tables, listed, quoted
from barnabas.pipeline.views.layout import Column, Layout, arrow_type
from barnabas.pipeline.views.part_files import LakeParts

CONNECTIONS_MAX = 8
CONNECT_TIMEOUT_S = 10
WAIT_S_MAX = 5.0  # for a connection
STREAMED_ROWS = 2_000
TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "SMALLINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE PRECISION",
    "string": 'TEXT COLLATE "C"',  # the same order as in Spark, Python and DuckDB
    "binary": "BYTEA",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
LONG = ("string", "binary")
PREFIX_CHARS = 200
NAMES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "bytea": "binary",
    "date": "date",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
}
# Errors after which a new connection may help.
LOST = (psycopg.OperationalError, psycopg.InterfaceError)

INDEXES = (
    "CREATE UNIQUE INDEX IF NOT EXISTS _views_index ON _views (view)",
    "CREATE INDEX IF NOT EXISTS _moves_index ON _moves (view)",
)


class PostgresDialect:
    name = "postgres"

    def type_of(self, type: str) -> str:
        return TYPES.get(type) or type.replace("decimal", "NUMERIC")

    def indexes(self, tables: Tables, layout: Layout) -> list[str]:
        """By key, by the end of past rows, and by the columns that queries filter."""
        found = [f"{tables.now} ({KEY})", f"{tables.past} ({TO})"]
        found += [f"{tables.now} {what}" for what in self._filtered(layout)]
        return [f"CREATE INDEX {tables.index(number)} ON {what}" for number, what in enumerate(found)]

    def _filtered(self, layout: Layout) -> list[str]:
        found = []
        for column in layout.keys:
            # A B-tree limits the length of values, so it gets a prefix; a hash index has no limit.
            if column.type in LONG:
                found.append(f"USING hash ({quoted(column.name)})")
            found.append(f"(({self.ordered(column)[0]}))")
        # Clients mostly ask for the greatest values first.
        found += [
            f"({quoted(column.name)} DESC NULLS LAST)"
            for column in layout.measures
            if column.type not in LONG
        ]
        return found

    def ordered(self, column: Column) -> list[str]:
        name = quoted(column.name)
        if column.type == "string":
            return [f"left({name}, {PREFIX_CHARS})", name]
        if column.type == "binary":
            return [f"substr({name}, 1, {PREFIX_CHARS})", name]
        return [name]

    def extreme(self, column: Column, *, is_greatest: bool) -> str:
        name = quoted(column.name)
        if column.type == "boolean":
            return f"{'bool_or' if is_greatest else 'bool_and'}({name})"
        if column.type == "binary":  # max(bytea) came with version 18
            order = "DESC NULLS LAST" if is_greatest else "ASC NULLS LAST"
            return f"(array_agg({name} ORDER BY {name} {order}))[1]"
        return f"{'max' if is_greatest else 'min'}({name})"

    def first(self, name: str, order: Sequence[str]) -> str:
        descending = ", ".join(f"{quoted(each)} DESC NULLS LAST" for each in order)
        return f"(array_agg({quoted(name)} ORDER BY {descending}))[1]"

    def any_value(self, name: str) -> str:
        return f"(array_agg({quoted(name)}) FILTER (WHERE {quoted(name)} IS NOT NULL))[1]"


class PostgresTransaction:
    """One transaction on a connection."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._dialect = PostgresDialect()

    def run(self, sql: str, *values: Any) -> None:
        self._execute(sql, values)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._execute(sql, values).fetchall()

    def table(self, sql: str, schema: pa.Schema | None, *values: Any) -> pa.Table:
        cursor = self._execute(sql, values)
        rows = cursor.fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(cursor.description or ())
        if schema is None:
            return self._free_table(cursor, columns)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.table(arrays, schema=schema)

    def count(self, sql: str, *values: Any) -> int:
        return self._execute(sql, values).rowcount

    def load(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        types = ", ".join(f"{quoted(field.name)} {self._type(field.type)}" for field in schema)
        self.run(f"CREATE TEMPORARY TABLE {name} ({types}) ON COMMIT DROP")
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {name} ({listed(schema.names)}) FROM STDIN (FORMAT csv)") as copy,
        ):
            for batch in batches:
                copy.write(as_csv(batch))
        self.run(f"ANALYZE {name}")

    def make(self, name: str, select: str) -> None:
        self.run(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {select}")
        self.run(f"ANALYZE {name}")

    def stream(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._connection.cursor("streamed") as cursor:
            cursor.execute(sql)
            while rows := cursor.fetchmany(STREAMED_ROWS):
                columns = zip(*rows, strict=True)
                arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
                yield pa.record_batch(arrays, schema=schema)

    def _type(self, type: pa.DataType) -> str:
        if pa.types.is_decimal(type):
            return f"NUMERIC({type.precision},{type.scale})"
        return next(self._dialect.type_of(name) for name in TYPES if arrow_type(name) == type)

    def _execute(self, sql: str, values: tuple[Any, ...]) -> psycopg.Cursor[tuple[Any, ...]]:
        if not values:
            return self._connection.execute(sql)
        return self._connection.execute(sql.replace("%", "%%").replace("?", "%s"), values)

    def _free_table(self, cursor: psycopg.Cursor[tuple[Any, ...]], columns: list[Any]) -> pa.Table:
        """The result of a client's statement, with the types that the database reports."""
        arrays: list[pa.Array] = []
        names: list[str] = []
        for description, values in zip(cursor.description or (), columns, strict=True):
            known = self._connection.adapters.types.get(description.type_code)
            name = known.name if known else "text"
            if name == "numeric":
                array = (
                    pa.array(values) if any(value is not None for value in values) else pa.nulls(len(values))
                )
            elif name in NAMES:
                array = pa.array(values, arrow_type(NAMES[name]))
            else:
                array = pa.array([None if value is None else str(value) for value in values], pa.string())
            arrays.append(array)
            names.append(unused(description.name, names))
        return pa.table(arrays, names=names)


class PostgresStore(SqlStore):
    dialect = PostgresDialect()

    def __init__(self, url: str, name: str, keep_horizons: int, limits: Limits, lake: LakeParts) -> None:
        super().__init__(keep_horizons, limits, lake)
        self._url = url
        self._schema = ("barnabas_" + re.sub(r"\W", "_", name, flags=re.ASCII)).lower()[:60]
        settings = f"-c search_path={self._schema},pg_temp -c timezone=UTC -c client_min_messages=warning"
        given = {"autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S, "options": settings}
        try:
            with psycopg.connect(
                url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, options=settings
            ) as one:
                one.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(self._schema)}")
                catalog.upgrade(PostgresTransaction(one))
                for statement in (*catalog.TABLES, *INDEXES):
                    one.execute(statement)
        except psycopg.Error as problem:
            raise StoreError(f"the serving store at {self._address()} cannot be opened: {problem}") from None
        self._pool: ConnectionPool[psycopg.Connection[tuple[Any, ...]]] = ConnectionPool(
            url,
            kwargs=given,
            min_size=0,
            max_size=CONNECTIONS_MAX,
            timeout=WAIT_S_MAX,
            check=ConnectionPool.check_connection,
            open=True,
        )

    @contextmanager
    def writing(self, view: str) -> Iterator[PostgresTransaction]:
        with self._failing(), self._pool.connection() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_of(self._schema, view),))
            yield PostgresTransaction(connection)

    @contextmanager
    def reading(self, *, bounded_ms: int) -> Iterator[PostgresTransaction]:
        with self._failing(), self._pool.connection() as connection:
            try:
                with connection.transaction():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    connection.execute("SELECT set_config('statement_timeout', %s, true)", (str(bounded_ms),))
                    yield PostgresTransaction(connection)
            except errors.QueryCanceled:
                raise BadRequest(f"the answer took more than {bounded_ms} ms: ask for less") from None
            except errors.UndefinedTable as problem:
                raise Missing(str(problem)) from None
            except (errors.DataError, errors.ProgrammingError, errors.NotSupportedError) as problem:
                raise BadRequest(f"the store says: {str(problem).splitlines()[0]}") from None

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise lost connections as StoreError. The transaction is rolled back."""
        try:
            yield
        except PoolTimeout:
            raise StoreError(
                f"the serving store at {self._address()} is not reachable, or all of its {CONNECTIONS_MAX} "
                f"connections were in use for {WAIT_S_MAX:g} s"
            ) from None
        except LOST as problem:
            reason = str(problem).partition("\n")[0]
            raise StoreError(f"the serving store at {self._address()} failed: {reason}") from None

    def close(self) -> None:
        self._pool.close()

    def _address(self) -> str:
        """The URL without user, password and parameters."""
        return re.sub(r"//[^/@]*@", "//", self._url).partition("?")[0]


def unused(name: str, names: list[str]) -> str:
    """A column name that is not used yet."""
    number = 0
    found = name
    while found in names:
        number += 1
        found = f"{name}_{number}"
    return found


def lock_of(schema: str, view: str) -> int:
    """The number of the lock that writers of a view hold."""
    text = f"{schema}/{view}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), signed=True)


def as_csv(batch: pa.RecordBatch) -> bytes:
    """Rows as COPY reads them: null is nothing, an empty text stands in quotes."""
    columns = [as_text(without_nul(column)) for column in batch.columns]
    table = pa.table(columns, names=batch.schema.names)
    out = io.BytesIO()
    csv.write_csv(table, out, csv.WriteOptions(include_header=False))
    return out.getvalue()


def as_text(column: pa.Array) -> pa.Array:
    """Bytes as PostgreSQL reads them in text; other values as they are."""
    if not pa.types.is_binary(column.type):
        return column
    return pa.array(
        [None if each is None else "\\x" + each.hex() for each in column.to_pylist()], pa.string()
    )


def without_nul(column: pa.Array) -> pa.Array:
    """Replace NUL, which PostgreSQL cannot store in text."""
    return pc.replace_substring(column, "\x00", "\ufffd") if pa.types.is_string(column.type) else column

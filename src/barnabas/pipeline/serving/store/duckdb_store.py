"""The store in an embedded DuckDB file, the default.

In: the file's path. Out: a `Store`. The database is locked down when it is open: SQL cannot reach files, the
network, Python's variables or settings. Does not know: views.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.pipeline.serving.store import catalog
from barnabas.pipeline.serving.store.port import Limits, StoreError
from barnabas.pipeline.serving.store.query import BadRequest
from barnabas.pipeline.serving.store.sql_store import SqlStore
from barnabas.pipeline.serving.store.transaction import Missing, Tables, quoted
from barnabas.pipeline.views.layout import Column, Layout
from barnabas.pipeline.views.part_files import LakeParts

LOCKED_DOWN = (
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET lock_configuration = true",
)
# Errors that a query causes; all others are failures of the store.
REFUSALS = (
    duckdb.ProgrammingError,
    duckdb.DataError,
    duckdb.NotSupportedError,
    duckdb.PermissionException,
    duckdb.OutOfMemoryException,
)
TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


STREAMED_ROWS = 2_048  # rows of a piece


class DuckDBDialect:
    name = "duckdb"

    def type_of(self, type: str) -> str:
        return TYPES.get(type) or type.upper()

    def indexes(self, tables: Tables, layout: Layout) -> list[str]:
        # DuckDB reads the keys of 100,000 rows in a millisecond; rows lie in the order of their keys, so it
        # skips most blocks (of texts it knows eight bytes). Its indexes must fit into memory, and may lose
        # rows when a killed process left a log of deleted and inserted keys.
        return []

    def ordered(self, column: Column) -> list[str]:
        return [quoted(column.name)]

    def extreme(self, column: Column, *, is_greatest: bool) -> str:
        return f"{'max' if is_greatest else 'min'}({quoted(column.name)})"

    def first(self, name: str, order: Sequence[str]) -> str:
        descending = ", ".join(f"{quoted(each)} DESC NULLS LAST" for each in order)
        return f"first({quoted(name)} ORDER BY {descending})"

    def any_value(self, name: str) -> str:
        return f"any_value({quoted(name)})"


class DuckDBTransaction:
    """One transaction on a cursor of its own."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def run(self, sql: str, *values: Any) -> None:
        self._execute(sql, values)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        # Through Arrow: otherwise DuckDB needs another package for times with a zone.
        table = self._execute(sql, values).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def table(self, sql: str, schema: pa.Schema | None, *values: Any) -> pa.Table:
        table = self._execute(sql, values).to_arrow_table()
        return table if schema is None else table.cast(schema)

    def count(self, sql: str, *values: Any) -> int:
        found = self._execute(sql, values).fetchone()
        return int(found[0]) if found else 0

    def load(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        problems: list[BaseException] = []

        def noted() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except BaseException as problem:  # DuckDB raises its own error instead
                problems.append(problem)
                raise

        stream = f"{name}_stream"
        self._cursor.register(stream, pa.RecordBatchReader.from_batches(schema, noted()))
        try:
            self._cursor.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {stream}")
        except duckdb.Error:
            if problems:
                raise problems[0] from None
            raise
        finally:
            self._cursor.unregister(stream)

    def make(self, name: str, select: str) -> None:
        self._cursor.execute(f"CREATE TEMPORARY TABLE {name} AS {select}")

    def stream(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self._cursor.execute(sql).to_arrow_reader(STREAMED_ROWS):
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    def _execute(self, sql: str, values: tuple[Any, ...]) -> duckdb.DuckDBPyConnection:
        return self._cursor.execute(sql, values) if values else self._cursor.execute(sql)


class DuckDBStore(SqlStore):
    dialect = DuckDBDialect()

    def __init__(self, path: Path, keep_horizons: int, limits: Limits, lake: LakeParts) -> None:
        super().__init__(keep_horizons, limits, lake)
        self._path = path
        self._limits = limits
        self._database = self._open()

    def _open(self) -> duckdb.DuckDBPyConnection:
        path, limits = self._path, self._limits
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{limits.memory_bytes_max >> 20}MiB",
            "max_temp_directory_size": f"{limits.temp_bytes_max >> 20}MiB",
            "temp_directory": limits.temp_folder or f"{path}.tmp",
            "preserve_insertion_order": True,  # of rows in the order of their keys
        }
        if limits.threads:
            config["threads"] = limits.threads
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            database = duckdb.connect(str(path), config=config)
            for statement in LOCKED_DOWN:
                database.execute(statement)
            catalog.upgrade(DuckDBTransaction(database))
            for statement in catalog.TABLES:
                database.execute(statement)
            drop_indexes(database)
            return database
        except (duckdb.Error, OSError) as problem:
            raise StoreError(f"the serving store {path} cannot be opened: {problem}") from None

    @contextmanager
    def writing(self, view: str) -> Iterator[DuckDBTransaction]:
        with self._failing(), self._database.cursor() as cursor:
            transaction = DuckDBTransaction(cursor)
            cursor.execute("BEGIN TRANSACTION")
            try:
                yield transaction
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):  # a failed COMMIT has ended the transaction
                    cursor.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self, *, bounded_ms: int) -> Iterator[DuckDBTransaction]:
        with self._failing(), self._database.cursor() as cursor:
            stopper = threading.Timer(bounded_ms / 1000, cursor.interrupt)
            stopper.daemon = True
            stopper.start()
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                yield DuckDBTransaction(cursor)
            except duckdb.InterruptException:
                raise BadRequest(f"the answer took more than {bounded_ms} ms: ask for less") from None
            except duckdb.CatalogException as problem:
                raise Missing(str(problem)) if "__" in str(problem) else refused(problem) from None
            except REFUSALS as problem:
                raise refused(problem) from None
            finally:
                stopper.cancel()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise failures of the store, such as a full disk, as StoreError. The transaction is rolled back."""
        try:
            yield
        except duckdb.FatalException as problem:
            # The database refuses everything after a fatal error: open the file again.
            self._database.close()
            self._database = self._open()
            raise StoreError(f"the serving store {self._path} failed: {first_line(problem)}") from None
        except duckdb.Error as problem:
            raise StoreError(f"the serving store {self._path} failed: {first_line(problem)}") from None

    def close(self) -> None:
        self._database.close()


def refused(problem: duckdb.Error) -> BadRequest:
    return BadRequest(f"the store says: {first_line(problem)}")


def first_line(problem: duckdb.Error) -> str:
    return str(problem).partition("\n")[0]


def drop_indexes(database: duckdb.DuckDBPyConnection) -> None:
    """Drop the indexes of a store that an earlier release wrote."""
    own = "database_name = current_database()"
    names = database.execute(f"SELECT index_name FROM duckdb_indexes() WHERE {own}").fetchall()
    for (name,) in names:
        database.execute(f"DROP INDEX {quoted(name)}")
    keys = database.execute(
        f"""SELECT table_name FROM duckdb_constraints() WHERE {own}
        AND constraint_type = 'PRIMARY KEY'"""
    ).fetchall()
    for (name,) in keys:
        database.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS FROM {quoted(name)}")
    if names or keys:
        database.execute("CHECKPOINT")  # a log with dropped indexes cannot always be replayed

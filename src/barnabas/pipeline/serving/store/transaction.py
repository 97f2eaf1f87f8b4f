"""One transaction of a store's database, the differences between databases, and the names of tables.

In: SQL with `?` for values. Out: rows, Arrow tables. `duckdb_store` and `postgres_store` implement it.
Does not know: views, parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.views.layout import Column, Layout

KEY, FROM, TO, VERSION, NUMBER = "_key", "_from", "_to", "_version", "_number"
KEY_CHARS_MAX = 500
VIEW_CHARS_MAX = 40


class Missing(Exception):
    """A table is gone, because the view got another layout meanwhile. Try again."""


class Transaction(Protocol):
    """One transaction."""

    def run(self, sql: str, *values: Any) -> None: ...

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]: ...

    def table(self, sql: str, schema: pa.Schema | None, *values: Any) -> pa.Table:
        """The result as Arrow, with `schema` if it is known."""
        ...

    def load(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        """Make a temporary table that lives until the transaction ends, in the database's bulk way."""
        ...

    def make(self, name: str, select: str) -> None:
        """Make a temporary table of a SELECT, as `load` does."""
        ...

    def stream(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The result in pieces of bounded size. No other statement may run before its end."""
        ...

    def count(self, sql: str, *values: Any) -> int:
        """Run a statement; the number of rows it changed."""
        ...


class Dialect(Protocol):
    """Differences between the databases."""

    name: str  # as sqlglot calls it

    def type_of(self, type: str) -> str: ...

    def indexes(self, tables: Tables, layout: Layout) -> list[str]:
        """CREATE INDEX for each index of a view's tables."""
        ...

    def ordered(self, column: Column) -> list[str]:
        """Expressions to order by, so that an index is used."""
        ...

    def extreme(self, column: Column, *, is_greatest: bool) -> str:
        """The aggregate for the greatest or least value; null is no value, NaN is the greatest."""
        ...

    def first(self, name: str, order: Sequence[str]) -> str:
        """The aggregate for the value of the row that is greatest in this order; null is the least."""
        ...

    def any_value(self, name: str) -> str:
        """The aggregate for any value that is not null."""
        ...


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str], table: str = "") -> str:
    prefix = f"{table}." if table else ""
    return ", ".join(prefix + quoted(name) for name in names)


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of the tables of one view and layout. A new layout gets new tables, so that readers go on."""

    view: str
    generation: int

    @property
    def now(self) -> str:
        """The merged view: one row for each key."""
        return self._name("now")

    @property
    def past(self) -> str:
        """Rows that were in `now` from one version until another."""
        return self._name("past")

    @property
    def speed(self) -> str:
        """Rows of speed parts beyond the horizon."""
        return self._name("speed")

    def index(self, number: int) -> str:
        return self._name(f"index_{number}")

    def _name(self, role: str) -> str:
        view = self.view
        if len(view) > VIEW_CHARS_MAX:  # PostgreSQL truncates longer names
            view = (
                view[: VIEW_CHARS_MAX - 9] + "_" + hashlib.blake2b(view.encode(), digest_size=4).hexdigest()
            )
        return quoted(f"{view}__{self.generation}_{role}")


def with_keys(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Add `_key`: all keys in one text, nulls included. The length before each value keeps combinations
    apart."""
    parts = [key_text(rows.column(column.name)) for column in layout.keys]
    if not parts:
        texts = pa.array([""] * rows.num_rows, pa.string())
    else:
        texts = pc.binary_join_element_wise(*parts, "") if len(parts) > 1 else parts[0]
    if rows.num_rows and pc.max(pc.utf8_length(texts)).as_py() > KEY_CHARS_MAX:
        texts = pa.array(list(map(shortened, texts.to_pylist())), pa.string())
    return rows.append_column(KEY, texts)


def key_text(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type):
        text = pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    else:
        text = values.cast(pa.string())
    size = pc.utf8_length(text).cast(pa.string())
    return pc.fill_null(pc.binary_join_element_wise(size, text, ":"), "-:")


def shortened(text: str) -> str:
    """A long key as its hash: indexes limit the length of values."""
    if len(text) <= KEY_CHARS_MAX:
        return text
    return "#" + hashlib.blake2b(text.encode(), digest_size=24).hexdigest()

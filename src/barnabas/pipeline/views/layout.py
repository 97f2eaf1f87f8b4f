"""The layout of a view's rows: columns, their types, and how each is merged.

In: the schema of a view's SQL. Out: a `Layout` that layers, store and answers share. Its fingerprint changes
when parts of the old layout cannot be merged with parts of the new one. Does not know: Spark, the store.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
ARROW: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


class Role(enum.StrEnum):
    KEY = "key"
    MEASURE = "measure"
    DERIVED = "derived"
    HIDDEN = "hidden"


class Merge(enum.StrEnum):
    SUM = "sum"
    COUNT = "count"
    MIN = "min"
    MAX = "max"
    LAST = "last"
    DISTINCT = "distinct"
    SPREAD = "spread"  # sums of squared distances from the mean, of hidden columns alone


class Computed(enum.StrEnum):
    """Measures that are computed from merged columns when they are queried."""

    AVG = "avg"
    VARIANCE = "variance"
    STDDEV = "stddev"
    COMPUTED = "computed"


MERGES = tuple(merge for merge in Merge if merge is not Merge.SPREAD)


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type for a type name; ValueError for a type that views cannot hold."""
    if decimal := DECIMAL.fullmatch(name):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    try:
        return ARROW[name]
    except KeyError:
        raise ValueError(f"views hold plain values, not {name}") from None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view. `type` is Spark's name; only derived columns have an `expression`.

    A hidden column is merged with the column that it belongs to, or by a `merge` of its own."""

    name: str
    type: str
    role: Role
    merge: Merge | None = None
    expression: str | None = None

    @property
    def arrow(self) -> pa.DataType:
        return arrow_type(self.type)


def last_at(measure: str) -> str:
    """The hidden column with the event time of a `last` measure."""
    return f"_at_{measure}"


def sketch_of(measure: str) -> str:
    """The hidden column with the sketch of a `distinct` measure."""
    return f"_sketch_{measure}"


def count_beside(spread: str) -> str:
    """The hidden column with the number of values that a spread is of."""
    return f"{spread}_n"


def sum_beside(spread: str) -> str:
    """The hidden column with the sum of values that a spread is of."""
    return f"{spread}_sum"


@dataclass(frozen=True)
class Layout:
    """Columns of a view in the order of its SQL, then hidden ones, then derived ones of the file.

    `source` names the view's tables, their identities and the SQL: parts of different sources never mix.
    `condition` is the view's HAVING over stored columns, in Spark's dialect: the store keeps all keys and
    shows those that meet it.
    """

    view: str
    columns: tuple[Column, ...]
    source: str
    condition: str = ""

    @cached_property
    def keys(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.role is Role.KEY)

    @cached_property
    def measures(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.role is Role.MEASURE)

    @cached_property
    def merged(self) -> tuple[Column, ...]:
        """Stored columns with a merge, hidden ones included."""
        return tuple(column for column in self.stored if column.merge is not None)

    @cached_property
    def derived(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.role is Role.DERIVED)

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """Columns of parts and of the store."""
        return tuple(column for column in self.columns if column.role is not Role.DERIVED)

    @cached_property
    def visible(self) -> tuple[Column, ...]:
        """Columns of answers."""
        return tuple(column for column in self.columns if column.role is not Role.HIDDEN)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.arrow) for column in self.stored])

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.blake2b(self.to_json().encode(), digest_size=12).hexdigest()

    def to_json(self) -> str:
        value = {"view": self.view, "source": self.source, "columns": list(map(asdict, self.columns))}
        return json.dumps(value | ({"condition": self.condition} if self.condition else {}))

    @classmethod
    def from_json(cls, text: str) -> Layout:
        value = json.loads(text)
        columns = tuple(map(column_from, value["columns"]))
        return cls(value["view"], columns, value["source"], value.get("condition", ""))


def column_from(value: Mapping[str, Any]) -> Column:
    return Column(
        name=value["name"],
        type=value["type"],
        role=Role(value["role"]),
        merge=Merge(value["merge"]) if value["merge"] else None,
        expression=value["expression"],
    )

"""Columns of bytes become typed columns, by the formats of a query.

In: record batches as they were fetched. Out: record batches as the query wants them. A row that cannot be
decoded is kept with null and its error (`mode` permissive), left out (drop), or ends the query with its place
(fail). Does not know: formats, connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.client.core.topology import TopicPartition
from barnabas.spark.formats.formats import decode_column
from barnabas.spark.formats.registry import with_prefixes
from barnabas.spark.options import SourceOptions
from barnabas.spark.reading.columns import HEADERS, SPARK_TYPES

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PERMISSIVE, DROP, FAIL = "permissive", "drop", "fail"
OFFSET, TIMESTAMP = "offset", "timestamp"


class RecordError(Exception):
    """A record cannot be decoded; the message says which and why."""


def error_column(side: str) -> str:
    return f"{side}_error"


def ddl_of(options: SourceOptions) -> str:
    """The schema of a query, in Spark's words."""
    types = {each.side: each.codec().ddl for each in options.formats}
    parts = [f"{name} {types.get(name, SPARK_TYPES[name])}" for name in options.columns]
    if options.mode == PERMISSIVE:
        parts += [f"{error_column(side)} string" for side in types if side in options.columns]
    return ", ".join(parts)


class Decoding:
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """`schema` is the query's, as Spark has read it."""
        from pyspark.sql.pandas.types import to_arrow_type

        self._options = options
        self._formats = [each for each in options.formats if each.side in options.columns]
        self._types = {
            each.side: to_arrow_type(schema[each.side].dataType, timezone="UTC") for each in self._formats
        }

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """The columns that must be fetched: errors are named by offsets, and headers may name schemas."""
        columns = self._options.columns
        needed = [OFFSET] if self._formats else []
        if any(each.ids_in_headers for each in self._formats):
            needed.append(HEADERS)
        needed += self._options.interceptors.columns
        return (*columns, *(name for name in dict.fromkeys(needed) if name not in columns))

    def apply(self, batch: pa.RecordBatch, place: TopicPartition) -> pa.RecordBatch:
        if not self._formats:
            return (
                batch
                if len(self.raw_columns) == len(self._options.columns)
                else batch.select(self._options.columns)
            )
        columns = {name: batch.column(name) for name in batch.schema.names}
        broken: list[bool] | None = None
        for each in self._formats:
            side = each.side
            if each.ids_in_headers:
                columns[side] = with_prefixes(columns[side], columns[HEADERS], side)
            columns[side], errors = decode_column(each.codec(), columns[side], self._types[side])
            if errors is not None and self._options.mode == FAIL:
                raise self._failure(errors, columns[OFFSET], place, side)
            if errors is not None:
                found = [error is not None for error in errors]
                broken = found if broken is None else [a or b for a, b in zip(broken, found, strict=True)]
            if self._options.mode == PERMISSIVE:
                columns[error_column(side)] = pa.array(errors or [None] * len(batch), pa.string())
        for name in (OFFSET, HEADERS, TIMESTAMP):
            if name not in self._options.columns:
                columns.pop(name, None)
        result = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        if broken is not None and self._options.mode == DROP:
            result = result.filter(pa.array([not each for each in broken]))
        return result

    def _failure(
        self, errors: list[str | None], offsets: Any, place: TopicPartition, side: str
    ) -> RecordError:
        row = next(index for index, error in enumerate(errors) if error is not None)
        return RecordError(f"the {side} of {place} at offset {offsets[row].as_py()} is broken: {errors[row]}")

"""Records as columns, on their way from a source to a topic or from a topic to a sink.

One `Records` has one key schema and one value schema; a change of schema starts another `Records`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from barnabas.connect.data.column import Column, as_indices
from barnabas.connect.data.schema import Schema


class Header(NamedTuple):
    """A header of a record, with the schema of its value where there is one."""

    name: str
    value: Any
    schema: Schema | None = None


Headers: TypeAlias = tuple[Header, ...]
Position: TypeAlias = tuple[dict[str, Any], dict[str, Any]]


class Record(NamedTuple):
    """One record as Python values, for connectors that go row by row."""

    topic: str | None
    partition: int | None
    key: Any
    value: Any
    timestamp: int | None = None
    headers: Headers = ()
    offset: int | None = None
    key_schema: Schema | None = None
    value_schema: Schema | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """Records of one key schema and one value schema, as columns of equal length."""

    topics: Any  # pa.Array of string, or a dictionary of them
    keys: Column
    values: Column
    timestamps: Any  # pa.Array of int64 in milliseconds; null: the record has none
    partitions: Any = None  # pa.Array of int32; None: nobody chose
    headers: list[Headers] | None = None
    offsets: Any = None  # pa.Array of int64, for sinks
    # For sources: (source partition, source offset) that are reached when this batch is durable.
    positions: list[Position] = field(default_factory=list)

    @staticmethod
    def of(
        topic: str,
        values: Column,
        keys: Column | None = None,
        *,
        timestamps: Any = None,
        partitions: Any = None,
        headers: list[Headers] | None = None,
        offsets: Any = None,
        positions: Sequence[Position] = (),
    ) -> Records:
        """Records of one topic; what is not given is null."""
        count = len(values)
        return Records(
            topics=one_topic(topic, count),
            keys=keys if keys is not None else Column.nulls(count),
            values=values,
            timestamps=as_array([None] * count if timestamps is None else timestamps, pa.int64()),
            partitions=None if partitions is None else as_array(partitions, pa.int32()),
            headers=headers,
            offsets=None if offsets is None else as_array(offsets, pa.int64()),
            positions=list(positions),
        )

    def __len__(self) -> int:
        return len(self.values)

    def take(self, indices: Sequence[int] | pa.Array) -> Records:
        """The records at these indices, in this order. Positions stay: they belong to the batch."""
        chosen = as_indices(indices)
        return replace(
            self,
            topics=self.topics.take(chosen),
            keys=self.keys.take(chosen),
            values=self.values.take(chosen),
            timestamps=self.timestamps.take(chosen),
            partitions=None if self.partitions is None else self.partitions.take(chosen),
            headers=None if self.headers is None else [self.headers[index] for index in chosen.to_pylist()],
            offsets=None if self.offsets is None else self.offsets.take(chosen),
        )

    def rows(self) -> Iterator[Record]:
        """The records one by one, as Python values."""
        count = len(self)
        nothing: list[Any] = [None] * count
        columns = zip(
            self.topics.to_pylist(),
            nothing if self.partitions is None else self.partitions.to_pylist(),
            self.keys.pylist(),
            self.values.pylist(),
            self.timestamps.to_pylist(),
            [()] * count if self.headers is None else self.headers,
            nothing if self.offsets is None else self.offsets.to_pylist(),
            strict=True,
        )
        for topic, partition, key, value, timestamp, headers, offset in columns:
            yield Record(
                topic,
                partition,
                key,
                value,
                timestamp,
                headers,
                offset,
                self.keys.schema,
                self.values.schema,
            )


def one_topic(topic: str, count: int) -> pa.Array:
    """The same topic for `count` records."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([topic]))


def as_array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)

"""Records of one topic as they stand in it, by columns. Single ones are made only where one fails.

In: columns of a fetch. Out: columns of keys, values and times for converters, and a
RawRecord of a place for errors and dead letters. Does not know: converters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.tasks.errors import RawRecord

SHOWN_CHARS_MAX = 300

COLUMNS = {
    "keys": pa.binary(),
    "values": pa.binary(),
    "partitions": pa.int32(),
    "offsets": pa.int64(),
    "timestamps": pa.int64(),
}
RawHeaders = tuple[tuple[str, bytes | None], ...]


class RawRecords(Sequence[RawRecord]):
    """Columns of equal length. `headers` is None where no record has any."""

    def __init__(
        self,
        topic: str,
        keys: Any,
        values: Any,
        partitions: Any,
        offsets: Any,
        timestamps: Any,
        headers: list[RawHeaders] | None = None,
        *,
        shows: bool = False,
    ) -> None:
        self.topic = topic
        self.keys = keys
        self.values = values
        self.partitions = partitions
        self.offsets = offsets
        self.timestamps = timestamps
        self.headers = headers
        self._shows = shows

    @classmethod
    def joined(cls, topic: str, parts: Sequence[RawRecords], *, shows: bool = False) -> RawRecords:
        """Records of one topic behind each other."""
        if len(parts) == 1:
            [one] = parts
            one._shows = shows
            return one
        keys, values, partitions, offsets, timestamps = (
            pa.concat_arrays([getattr(each, name) for each in parts]) if parts else pa.array([], type_)
            for name, type_ in COLUMNS.items()
        )
        headers: list[RawHeaders] | None = None
        if any(each.headers is not None for each in parts):
            headers = [one for each in parts for one in (each.headers or [()] * len(each))]
        return cls(topic, keys, values, partitions, offsets, timestamps, headers, shows=shows)

    @classmethod
    def of_batch(cls, topic: str, partition: int, batch: pa.RecordBatch) -> RawRecords:
        """Columns of a fetch: key, value, offset, timestamp, headers."""
        column = batch.column("headers")
        found: list[RawHeaders] | None = None
        if len(column) and (pc.max(pc.list_value_length(column)).as_py() or 0) > 0:
            found = [tuple((each["key"], each["value"]) for each in row or ()) for row in column.to_pylist()]
        return cls(
            topic,
            batch.column("key"),
            batch.column("value"),
            pa.repeat(pa.scalar(partition, pa.int32()), len(batch)),
            batch.column("offset"),
            batch.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64()),
            found,
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> RawRecord: ...

    @overload
    def __getitem__(self, index: slice) -> RawRecords: ...

    def __getitem__(self, index: int | slice) -> RawRecord | RawRecords:
        if isinstance(index, slice):
            return self.take(list(range(*index.indices(len(self)))))
        if index >= len(self):
            raise IndexError(index)
        key, value = self.keys[index].as_py(), self.values[index].as_py()
        return RawRecord(
            self.topic,
            self.partitions[index].as_py(),
            self.offsets[index].as_py(),
            key,
            value,
            () if self.headers is None else self.headers[index],
            self.timestamps[index].as_py(),
            repr((key, value))[:SHOWN_CHARS_MAX] if self._shows else "",
        )

    def take(self, indices: Sequence[int]) -> RawRecords:
        if len(indices) == len(self):
            return self
        chosen = pa.array(indices, pa.int64())
        return RawRecords(
            self.topic,
            self.keys.take(chosen),
            self.values.take(chosen),
            self.partitions.take(chosen),
            self.offsets.take(chosen),
            self.timestamps.take(chosen),
            None if self.headers is None else [self.headers[index] for index in indices],
            shows=self._shows,
        )

    def at(self, partition: int | None, offset: int | None) -> RawRecord | None:
        """The record at a place of the topic."""
        is_it = pc.and_(pc.equal(self.offsets, offset), pc.equal(self.partitions, partition))
        index = pc.index(is_it, True).as_py()
        return None if index < 0 else self[index]

"""Numbers the lines and rows of files where they are read, without sorting them. Runs in Python workers.

In: Arrow batches of rows in the order of their file. Out: the same rows with `offset`. In the first block of
a file it is the number of the line, from 1. Spark reads a large file in blocks, by several tasks: behind the
first one, `offset` is the byte where the block begins plus the line's number in it. As a line has a byte at
least, such numbers grow along the file, and no two are equal. Does not know: what is in the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

DDL = "value string, topic string, timestamp timestamp, offset bigint"
PLACES = ("topic", "block")


def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    place: tuple[str, int] | None = None
    count = 0
    for batch in batches:
        numbers: list[pa.Array] = []
        start = 0
        for end in ends_of_runs(batch):
            here = (batch.column("topic")[start].as_py(), batch.column("block")[start].as_py())
            if here != place:
                place, count = here, 0
            first = here[1] + count + 1
            numbers.append(pa.array(range(first, first + end - start), pa.int64()))
            count += end - start
            start = end
        offset = pa.concat_arrays(numbers) if numbers else pa.array([], pa.int64())
        columns = [batch.column(name) for name in ("value", "topic", "timestamp")]
        yield pa.RecordBatch.from_arrays([*columns, offset], names=["value", "topic", "timestamp", "offset"])


def ends_of_runs(batch: pa.RecordBatch) -> list[int]:
    """The ends of rows in one block."""
    import pyarrow.compute as pc

    found: set[int] = set()
    for name in PLACES:
        found.update(pc.run_end_encode(batch.column(name)).run_ends.to_pylist())
    return sorted(found)

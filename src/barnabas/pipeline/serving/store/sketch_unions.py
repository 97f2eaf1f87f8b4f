"""Unites sketches of the same key, in batches of bounded size.

In: a transaction, and a SELECT of rows whose keys may have several sketches. Out: the united sketches in the
merged table. SQL has no function for sketches, so Python unites them, a batch at a time; the results wait in
a file, because a transaction runs one statement at a time. Does not know: versions, horizons.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.ipc

from barnabas.pipeline.serving.store.merging import distinct_columns
from barnabas.pipeline.serving.store.transaction import KEY, Transaction, quoted
from barnabas.pipeline.views import sketches
from barnabas.pipeline.views.layout import Layout, sketch_of

UNITED = "united"
SCHEMA = pa.schema([(KEY, pa.string()), ("number", pa.int64()), ("sketch", pa.binary())])
SEVERAL = pa.schema([(KEY, pa.string()), ("several", pa.list_(pa.binary()))])


def unite(transaction: Transaction, layout: Layout, rows: str, merged: str) -> None:
    """Replace counts and sketches of `merged` for keys with several sketches in `rows`."""
    for column in distinct_columns(layout):
        name, sketch = quoted(column.name), quoted(sketch_of(column.name))
        several = f"""SELECT {KEY}, array_agg({sketch}) AS several FROM ({rows}) AS rows_of_key
            WHERE {sketch} IS NOT NULL GROUP BY {KEY} HAVING count(*) > 1"""
        with tempfile.TemporaryFile() as file:
            with pyarrow.ipc.new_stream(file, SCHEMA) as writer:
                for batch in transaction.stream(several, SEVERAL):
                    writer.write_batch(united(batch))
            file.seek(0)
            transaction.load(UNITED, SCHEMA, batches_in(file))
        transaction.run(
            f"""UPDATE {merged} SET {name} = u.number, {sketch} = u.sketch FROM {UNITED} u
            WHERE {merged}.{KEY} = u.{KEY}"""
        )
        transaction.run(f"DROP TABLE {UNITED}")


def united(batch: pa.RecordBatch) -> pa.RecordBatch:
    keys, several = batch.column(0), batch.column(1).to_pylist()
    found = [sketches.union(each) for each in several]
    numbers = pa.array([sketches.estimate(each) for each in found], pa.int64())
    return pa.record_batch([keys, numbers, pa.array(found, pa.binary())], schema=SCHEMA)


def batches_in(file: object) -> Iterator[pa.RecordBatch]:
    with pyarrow.ipc.open_stream(file) as reader:
        yield from reader

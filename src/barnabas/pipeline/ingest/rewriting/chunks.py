"""Cuts a part of raw or of a quarantine into chunks of whole batches, none with too many rows.

In: rows with a column `batch`. Out: chunks, one after the other; a batch that is larger is a chunk of its
own. The driver looks at the counts of a bounded number of batches at a time.
Does not know: what is done with a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from barnabas.engine.session import is_remote, parallelism
from barnabas.pipeline.ingest.judging.parsed_batch import ROWS_ON_DRIVER_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_CORE_MAX = 250_000  # of a chunk: its rows lie in the executors' memory, or on their disks
BATCHES_COUNTED_MAX = 10_000  # at a time


class Chunk(NamedTuple):
    first: int  # batch
    end: int  # the batch behind the last
    rows: int


class Counted(NamedTuple):
    batch: int
    rows: int
    since_us: int
    until_us: int


def rows_per_chunk(spark: SparkSession) -> int:
    """More where the cluster is larger. Spark Connect has no context to ask, and copies rows through the
    driver."""
    if is_remote(spark):
        return ROWS_ON_DRIVER_MAX
    return ROWS_PER_CORE_MAX * parallelism(spark)


def chunks(rows: DataFrame, rows_max: int, span_us: int | None = None) -> Iterator[Chunk]:
    """Chunks in order. None is longer than `span_us`, from its first ingested row to its last: within a chunk
    the first row of each key counts."""
    found = rows.agg(F.min("batch"), F.max("batch")).first()
    if found is None or found[0] is None:
        return
    yield from grouped(counted(rows, int(found[0]), int(found[1])), rows_max, span_us)


def counted(rows: DataFrame, first: int, last: int) -> Iterator[Counted]:
    at = F.unix_micros("ingested_at")
    for low in range(first, last + 1, BATCHES_COUNTED_MAX):
        some = rows.where(f"batch >= {low} AND batch < {low + BATCHES_COUNTED_MAX}")
        counts = some.groupBy("batch").agg(F.count("*"), F.min(at), F.max(at)).orderBy("batch")
        yield from (Counted(*row) for row in counts.collect())


def grouped(batches: Iterator[Counted], rows_max: int, span_us: int | None) -> Iterator[Chunk]:
    first = end = rows = since = 0
    for each in batches:
        is_long = span_us is not None and each.until_us - since > span_us
        if rows and (rows + each.rows > rows_max or is_long):
            yield Chunk(first, end, rows)
            rows = 0
        if not rows:
            first, since = each.batch, each.since_us
        end, rows = each.batch + 1, rows + each.rows
    if rows:
        yield Chunk(first, end, rows)

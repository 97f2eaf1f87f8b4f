"""Runs SQL over frames: each table of the SQL gets a temporary view of its own name.

In: frames. Out: names for SQL; the views are dropped when the block ends. Sessions may be shared, so names
are unique across threads and processes. Does not know: what the SQL means.
"""

from __future__ import annotations

import itertools
import os
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBERS = itertools.count()


class Scope:
    """Temporary views that live as long as the block. Frames that SQL made of them are valid until then."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._made: list[str] = []
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._kept:
            frame.unpersist()
        for name in self._made:
            self.spark.catalog.dropTempView(name)

    def place(self, frame: DataFrame) -> str:
        """A name for the frame in SQL."""
        name = f"_barnabas_{os.getpid()}_{next(NUMBERS)}"
        frame.createOrReplaceTempView(name)
        self._made.append(name)
        return name

    def keep(self, frame: DataFrame) -> DataFrame:
        """Let executors keep a frame that is used several times."""
        kept = frame.persist()
        self._kept.append(kept)
        return kept

"""Measures rows from a topic into all zones, against the job written by hand, and with ten times the data.

In: a session for both, a broker. Out: a `Result` of rows a second, a `Growth`. Both sides must have the same
rows in every zone. Does not know: how either works, tables of results.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.engine.session import session as pipeline_session
from barnabas.pipeline import SparkSettings
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.views.layers import Views
from barnabas.pipeline.views.part_files import lake_parts
from barnabas.testing import spark_connector
from barnabas.testing.broker import Broker
from bench.pipeline_by_hand import Job
from bench.pipeline_orders import PARTITIONS, ROWS, TWICE, VIEW, Scale, pipeline_of
from bench.rounds import Result
from bench.rows import Better, Row
from bench.spark_effort import Effort

ZONES = ("raw", "staging", "trusted", "quarantine", "refined")
FLOOR = 1.5
ROUNDS_MIN = 2
ZONES_SHARE, GROWTH_SHARE = 0.4, 0.2  # shares of the time limit
EFFORT_TITLE = "the same, rows for each second of processor time"  # of Spark, its workers and the broker
TIMES = 10
EARLY, LATE = slice(1, 6), slice(-5, None)  # batches; the first one creates the tables

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Growth:
    """Microseconds for each row: of few rows, and of ten times as many."""

    rows: int
    zones: tuple[float, float]
    view: tuple[float, float]
    batches: tuple[float, float]  # of the many: seconds of an early batch and of a late one


@contextmanager
def session() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(map(str, spark_connector.jars())),
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = pipeline_session(SparkSettings(master="local[2]"), ("delta",), "bench", settings)
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


class Zones:
    def __init__(self, spark: Any, broker: Broker, scale: Scale, work: Path, say: Say) -> None:
        self.spark = spark
        self.broker = broker
        self.scale = scale
        self.worker = work
        self.say = say
        self.by_effort = Result(Row("effort", EFFORT_TITLE, "rows/s", Better.MORE, FLOOR))
        self.first: dict[str, float] = {}  # rows a second of the first run of each
        self._rate: float | None = None  # rows a second of ours, warm
        self._lakes = 0

    def fill(self, topic: str, rows: int) -> int:
        self.say(f"filling {topic} with {rows:,} orders")
        self.broker.create_topic(topic, partitions=PARTITIONS)
        frame = self.spark.range(0, rows, 1, PARTITIONS).selectExpr("id", TWICE)
        frame = frame.selectExpr("cast(id as string) key", f"{ROWS} value")
        kafka = {"kafka.bootstrap.servers": self.broker.bootstrap, "topic": topic}
        frame.write.format("barnabas").options(**kafka).mode("append").save()
        return rows + len(range(3, rows, 50))

    def lake(self) -> Path:
        self._lakes += 1
        return self.worker / f"lake-{self._lakes}"

    def ours(self, topic: str, lake: Path) -> None:
        pipeline = pipeline_of(self.broker.bootstrap, topic, lake, self.scale.rows_per_batch)
        SourceRunner(self.spark, pipeline, "orders").drain()

    def by_hand(self, topic: str, lake: Path) -> None:
        Job(self.spark, self.broker.bootstrap, topic, lake, self.scale.rows_per_batch).run()

    def counts(self, lake: Path) -> dict[str, int]:
        found = {}
        for zone in ZONES:
            name = "large" if zone == "refined" else "orders"
            path = lake / zone / name if (lake / zone / name).exists() else lake / zone
            found[zone] = self.spark.read.format("delta").load(str(path)).count()
        return found

    # -- against the job written by hand -----------------------------------------------------------

    def compare(self) -> Result:
        """Rows a second from the topic to all zones; both must have the same rows in each."""
        result = Result(Row("zones", "topic to all four zones", "rows/s", Better.MORE, FLOOR))
        sent = self.fill("zones", self.scale.rows)
        deadline = time.monotonic() + self.scale.share_s(ZONES_SHARE)
        contents = []
        for number in range(-1, self.scale.rounds):  # the first of each warms up
            if number >= ROUNDS_MIN and time.monotonic() > deadline:
                break
            for name, run, found, efforts in (
                ("ours", self.ours, result.ours, self.by_effort.ours),
                ("by hand", self.by_hand, result.theirs, self.by_effort.theirs),
            ):
                lake = self.lake()
                started = time.perf_counter()
                with Effort() as effort:
                    run("zones", lake)
                rate = sent / (time.perf_counter() - started)
                which = f"round {number + 1}" if number >= 0 else "warming up"
                self.say(f"zones: {name}, {which}: {rate:,.0f} rows/s")
                if number < 0:
                    contents.append(self.counts(lake))
                    self.first[name] = rate
                else:
                    found.append(rate)
                    efforts.append(sent / effort.seconds)
                shutil.rmtree(lake)
        assert contents[0] == contents[1], f"the zones differ: ours {contents[0]}, by hand {contents[1]}"
        assert contents[0]["raw"] == sent
        self._rate = statistics.median(result.ours)
        return result

    # -- ten times the data ------------------------------------------------------------------------

    def growth(self) -> Growth:
        """Measure few rows three times (the best counts), and many rows once."""
        rows = self.scale.growth
        if self._rate is not None:  # fewer rows on a slow machine
            rows = min(rows, int(self._rate * self.scale.share_s(GROWTH_SHARE) / (TIMES + 3)))
        rows = max(rows, 1_000)
        per_batch = min(self.scale.growth_batch, rows // 2)
        deadline = time.monotonic() + self.scale.share_s(GROWTH_SHARE)
        few = self.fill("growth-1", rows)
        runs = []
        for _ in range(3):
            runs.append(self._grown("growth-1", few, per_batch))
            if time.monotonic() > deadline:
                break
        small = min(runs[1:] or runs)
        many = self.fill("growth-10", rows * TIMES)
        large = self._grown("growth-10", many, per_batch)
        steps = large[2]
        early, late = statistics.median(steps[EARLY]), statistics.median(steps[LATE])
        return Growth(few, (small[0], large[0]), (small[1], large[1]), (early, late))

    def _grown(self, topic: str, sent: int, per_batch: int) -> tuple[float, float, list[float]]:
        """Microseconds for each row through the zones and for the view, and the seconds of each batch."""
        lake = self.lake()
        pipeline = pipeline_of(self.broker.bootstrap, topic, lake, per_batch)
        runner = SourceRunner(self.spark, pipeline, "orders")
        steps: list[float] = []
        started = time.perf_counter()
        while runner.step() is not None:
            steps.append(time.perf_counter() - started - sum(steps))
        zones = sum(steps) / sent * 1e6
        store = open_store("duckdb", name="bench", folder=lake / "store", lake=lake_parts(pipeline))
        try:
            views = Views(self.spark, pipeline, store)
            seconds = [views.refresh(VIEW.name).seconds for _ in range(3)]
        finally:
            store.close()
        view = min(seconds) / sent * 1e6
        self.say(f"growth: {sent:,} rows, {zones:.1f} µs a row, {view:.2f} µs a row for the view")
        shutil.rmtree(lake)
        return zones, view, steps

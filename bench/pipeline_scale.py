"""`python -m bench.pipeline_scale`: measures what a million rows cost while the tables grow.

In: how many millions, rows of a batch. Out: a line of JSON for each million: processor seconds of the driver
and of the executors apart, and the driver's memory. With `--folder`, topic, lake and results stay there, and
the same command goes on behind the last million: a long measurement may be cut into pieces. The first million
of a piece warms up and is marked so. `--grow N` copies rows that are older than the horizon until the tables
have N million rows more, which is quicker than ingesting them; the next millions are then measured on tables
of that size. Spark runs as `local-cluster`: executors are processes of
their own, with their own Python workers, so the operating system tells apart what each of them used. (Master
and worker of such a cluster run in the driver's Java machine, and do next to nothing.) Keys are random, and
the horizon is always the last million rows. Does not know: tables of results.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from barnabas.engine.delta.log import table_version
from barnabas.engine.session import session
from barnabas.pipeline import Pipeline, SparkSettings, TableName
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.testing.broker import Broker
from bench.pipeline_orders import PARTITIONS, ROWS, TWICE, pipeline_of

MILLION = 1_000_000
MASTER = "local-cluster[1,2,2048]"
KEYS_IN_HORIZON = MILLION
MINUTE = timedelta(minutes=1)  # of the runner's clock, for each batch
FILES_OF_A_MILLION = 16
RANDOM_KEYS = "'order_id', concat('o', id)", "'order_id', md5(cast(id as string))"


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one million rows: whether Spark was warm; processor seconds and wall time; then the driver's memory
    in MB, and how many rows were duplicates."""

    million: int
    is_warm: bool
    driver_s: float
    executors_s: float
    wall_s: float
    heap_mb: float
    python_mb: float
    duplicates: int


def processor_s() -> tuple[float, float]:
    """Processor seconds so far of the driver (this process and its Java machine) and of the executors."""
    me = psutil.Process()
    driver, executors = sum(me.cpu_times()[:2]), 0.0
    for child in me.children():
        if "java" not in child.name():
            continue  # the broker
        driver += total(child)
        for one in child.children():
            spent = sum(total(each) for each in (one, *one.children(recursive=True)))
            if "java" in one.name():
                executors += spent
            else:
                driver += spent
    return driver, executors


def total(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
        found = times.user + times.system
        # Python workers are forks of a daemon; those that have ended count among its children.
        if "python" in process.name():
            found += times.children_user + times.children_system
    except psutil.Error:
        return 0.0
    return float(found)


def memory_mb(spark: Any) -> tuple[float, float]:
    """What the driver's Java machine holds after a collection of garbage, and this process."""
    gc.collect()  # frames of Python that are no more keep their plans in the Java machine
    jvm = spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    return heap, psutil.Process().memory_info().rss / 2**20


def fill(spark: Any, broker: Broker, topic: str, first: int, padding: int) -> None:
    frame = spark.range(first, first + MILLION, 1, PARTITIONS).selectExpr("id", TWICE)
    value = ROWS.replace(*RANDOM_KEYS).replace(
        "'espresso'", f"repeat(md5(cast(id as string)), {padding // 32})"
    )
    frame = frame.selectExpr("cast(id as string) key", f"{value} value")
    kafka = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    frame.write.format("barnabas").options(**kafka).mode("append").save()


def grow(spark: Any, pipeline: Pipeline, done: int, millions: int) -> None:
    """Copy rows of batches before the horizon, in commits of about a million rows, as many files in each as
    batches write."""
    lake = pipeline.lake_location
    for table, column in (
        ("raw.orders", "batch"), ("staging.orders", "_batch"), ("trusted.orders", "_batch"),
    ):  # fmt: skip
        path = lake.path(TableName.parse(table))
        version = table_version(Path(path))  # a table that is read without one has the copies, too
        rows = spark.read.format("delta").option("versionAsOf", version).load(path)
        newest = rows.agg({column: "max"}).first()[0]
        old = rows.where(f"{column} <= {newest * (done - 1) // done}")
        share = MILLION / max(old.count(), 1)
        for number in range(millions):
            some = old.sample(True, share, number).repartition(FILES_OF_A_MILLION)
            some.write.format("delta").mode("append").save(path)


def measured(
    millions: int, rows_per_batch: int, padding: int, folder: Path, done: int = 0, grown: int = 0
) -> Iterator[Spent]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # executors reach the driver there
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.task.maxFailures": "4",
    }
    spark = session(SparkSettings(master=MASTER), ("delta",), "scale", settings)
    spark.sparkContext.setLogLevel("OFF")
    with Broker(folder / "data", in_process=False) as broker:
        try:
            if not done:
                broker.create_topic("scale", partitions=PARTITIONS)
            pipeline = pipeline_of(broker.bootstrap, "scale", folder / "lake", rows_per_batch)
            within_s = KEYS_IN_HORIZON / rows_per_batch * MINUTE.total_seconds()
            staging = dataclasses.replace(pipeline.staging[0], within_s=within_s)
            pipeline = dataclasses.replace(pipeline, staging=[staging])
            now = [datetime(2026, 1, 1, tzinfo=UTC) + MINUTE * (done * MILLION // rows_per_batch)]
            if grown:
                grow(spark, pipeline, done, grown)
            runner = SourceRunner(spark, pipeline, "orders", clock=lambda: now[0])
            for million in range(done, millions):
                fill(spark, broker, "scale", million * MILLION, padding)
                started, before = time.monotonic(), processor_s()
                duplicates = 0
                while (batch := runner.step()) is not None:
                    now[0] += MINUTE
                    duplicates += batch.duplicates
                driver, executors = (b - a for a, b in zip(before, processor_s(), strict=True))
                wall = time.monotonic() - started
                heap, python = memory_mb(spark)
                is_warm = million > done
                yield Spent(million + 1, is_warm, driver, executors, wall, heap, python, duplicates)
        finally:
            spark.stop()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline_scale")
    parser.add_argument("--millions", type=int, default=30)
    parser.add_argument("--batch", type=int, default=250_000)
    parser.add_argument("--padding", type=int, default=32, help="bytes by which rows of 140 bytes are longer")
    parser.add_argument("--grow", type=int, default=0, help="millions of rows to copy first")
    parser.add_argument("--folder", type=Path, help="keep everything here, and go on from there")
    options = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scale-")))
        results = folder / "spent.jsonl"
        lines = results.read_text().splitlines() if results.exists() else []
        for line in lines:
            print(line, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for spent in measured(
            options.millions, options.batch, options.padding, folder, len(lines), options.grow
        ):
            line = json.dumps(dataclasses.asdict(spent))
            with results.open("a") as out:
                out.write(f"{line}\n")
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

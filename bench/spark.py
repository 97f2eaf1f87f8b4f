"""`python -m bench.spark`: compares our Spark source and sink with Spark's own connector, in one session.

In: a Barnabas broker with filled topics, `local[2]`. Out: a table, and `docs/benchmarks-spark.md`. The rows
read and write records of 100 bytes and 1 KB, uncompressed, with lz4 and with zstd, and stream single records.
The memory of Python workers is measured for growing partitions. Both connectors use the same broker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from barnabas.testing import spark_connector
from barnabas.testing.broker import Broker
from bench import machine, spark_bounds, spark_worker
from bench.rounds import Result
from bench.rows import Better, Row
from bench.spark_effort import Effort

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-spark.md"
OURS, THEIRS, BARE = "barnabas", "kafka", spark_bounds.NAME
PARTITIONS = 2
CODECS = ("none", "lz4", "zstd")
SIZES = (100, 1000)
TRICKLE_BATCHES = 30
MEMORY = Path("/dev/shm")  # the benchmark compares connectors, not disks
FORGETS = {"log.segment.delete.delay.ms": 100}  # deleted topics free their memory soon
GROWTH = (100_000, 1_000_000, 10_000_000)
ROWS = {
    row.name: row
    for row in (
        *(
            Row(f"read-{size}-{codec}", f"read {size} B, {codec}", "k records/s", Better.MORE, 2.0)
            for size in SIZES
            for codec in CODECS
        ),
        *(
            Row(f"write-{size}-{codec}", f"write {size} B, {codec}", "k records/s", Better.MORE, 2.0)
            for size in SIZES
            for codec in CODECS
        ),
        Row("trickle", "micro-batch of a trickle", "ms", Better.LESS, 1.0),
    )
}


@dataclass(frozen=True, slots=True)
class Scale:
    records: int = 2_000_000  # of 100 bytes, half as many of 1 KB
    rounds: int = 3
    growth: tuple[int, ...] = GROWTH

    def records_of(self, size: int) -> int:
        return self.records if size <= SIZES[0] else self.records // 2


QUICK = Scale(records=200_000, rounds=2, growth=GROWTH[:2])


@contextmanager
def session(settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": ",".join(map(str, spark_connector.jars())),
        **(settings or {}),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark_bounds.register(spark)
    try:
        yield spark
    finally:
        spark.stop()


class Bench:
    def __init__(self, spark: Any, broker: Broker, scale: Scale, say: Callable[[str], None]) -> None:
        self.spark = spark
        self.broker = broker
        self.scale = scale
        self.say = say
        self.results: dict[str, Result] = {}
        self.efforts: dict[str, tuple[float, float]] = {}  # their processor time by ours, and by the bound's

    def run(self, names: list[str]) -> list[Result]:
        for name in names or list(ROWS):
            kind, _, rest = name.partition("-")
            size, _, codec = rest.partition("-")
            if kind == "read":
                self.reads(name, int(size), codec)
            elif kind == "write":
                self.writes(name, int(size), codec)
            else:
                self.trickle(name)
            print(*cells(self.results[name], self.efforts), sep=" | ", file=sys.stderr, flush=True)
        return list(self.results.values())

    def in_turns(self, name: str, measure: Callable[[str], float], *, has_bound: bool = True) -> None:
        """Run one warm-up round of each, then A B A B; the bound is a Python source or sink without work."""
        result = self.results[name] = Result(ROWS[name])
        bare: list[float] = []
        efforts: dict[str, list[float]] = {OURS: [], THEIRS: [], BARE: []}
        turns = [(OURS, result.ours), (THEIRS, result.theirs), *([(BARE, bare)] if has_bound else [])]
        for connector, _ in turns:
            self.say(f"{name}: warming up {connector}")
            measure(connector)
        for number in range(self.scale.rounds):
            for connector, found in turns:
                self.say(f"{name}: round {number + 1}, {connector}")
                with Effort() as effort:
                    found.append(measure(connector))
                efforts[connector].append(effort.seconds)
        if has_bound:
            result.limit = statistics.median(a / b for a, b in zip(bare, result.theirs, strict=True))
            ours, theirs, bound = (statistics.median(efforts[each]) for each in (OURS, THEIRS, BARE))
            self.efforts[name] = (theirs / ours, theirs / bound)

    def bare_frame(self, size: int) -> Any:
        options = {"rows": self.scale.records_of(size), "size": size}
        return self.spark.read.format(BARE).options(**options).load()

    def frame(self, connector: str, topic: str) -> Any:
        reader = self.spark.read.format(connector).option("kafka.bootstrap.servers", self.broker.bootstrap)
        return reader.option("subscribe", topic).load()

    def rows(self, size: int) -> Any:
        """Rows with a key of some bytes and a value of the given size, half of it random."""
        half = size // 2
        mixed = f"substr(repeat(sha1(string(id)), {half // 40 + 1}), 1, {size - half})"
        value = f"concat(repeat('x', {half}), {mixed})"
        return self.spark.range(0, self.scale.records_of(size), 1, PARTITIONS).selectExpr(
            "cast(id as string) key", f"{value} value"
        )

    def fill(self, size: int, codec: str) -> str:
        topic = f"read-{size}-{codec}"
        self.say(f"filling {topic}")
        self.broker.create_topic(topic, partitions=PARTITIONS)
        self.write(OURS, self.rows(size), topic, codec)
        return topic

    def write(self, connector: str, rows: Any, topic: str, codec: str) -> None:
        writer = rows.write.format(connector).option("kafka.bootstrap.servers", self.broker.bootstrap)
        writer = writer.option("topic", topic).option("kafka.compression.type", codec)
        writer.mode("append").save()

    def reads(self, name: str, size: int, codec: str) -> None:
        topic, records = self.fill(size, codec), self.scale.records_of(size)

        def measure(connector: str) -> float:
            started = time.perf_counter()
            frame = self.bare_frame(size) if connector == BARE else self.frame(connector, topic)
            [row] = frame.selectExpr(
                "count(*) n", "sum(length(key) + length(value)) b", "max(offset)", "max(timestamp)"
            ).collect()
            seconds = time.perf_counter() - started
            assert row.n == records, f"{connector} read {row.n} of {records}"
            return records / seconds / 1e3

        self.in_turns(name, measure)
        self.broker.delete_topic(topic)

    def writes(self, name: str, size: int, codec: str) -> None:
        rows = self.rows(size).persist()
        rows.count()
        counter = 0

        def measure(connector: str) -> float:
            nonlocal counter
            counter += 1
            topic = f"{name}-{counter}"
            self.broker.create_topic(topic, partitions=PARTITIONS)
            started = time.perf_counter()
            self.write(connector, rows, topic, codec)
            seconds = time.perf_counter() - started
            self.broker.delete_topic(topic)
            return self.scale.records_of(size) / seconds / 1e3

        self.in_turns(name, measure)
        rows.unpersist()

    def trickle(self, name: str) -> None:
        """The median time of micro-batches that find one record each."""

        def measure(connector: str) -> float:
            from confluent_kafka import Producer

            topic = f"trickle-{connector}-{time.monotonic_ns()}"
            self.broker.create_topic(topic, partitions=PARTITIONS)
            producer = Producer({"bootstrap.servers": self.broker.bootstrap})
            reader = self.spark.readStream.format(connector).option(
                "kafka.bootstrap.servers", self.broker.bootstrap
            )
            frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
            with tempfile.TemporaryDirectory() as folder:
                writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
                query = writer.trigger(processingTime="0 seconds").start()
                try:
                    took: list[float] = []
                    seen = -1
                    while len(took) < TRICKLE_BATCHES:
                        if not query.isActive:
                            raise RuntimeError(f"{connector} ended its query: {query.exception()}")
                        producer.produce(topic, b"x", partition=len(took) % PARTITIONS)
                        producer.flush()
                        progress = query.lastProgress
                        if progress and progress["numInputRows"] and progress["batchId"] != seen:
                            seen = progress["batchId"]
                            took.append(progress["durationMs"]["triggerExecution"])
                        time.sleep(0.02)
                finally:
                    query.stop()
            self.broker.delete_topic(topic)
            return float(statistics.median(took[TRICKLE_BATCHES // 3 :]))

        self.in_turns(name, measure, has_bound=False)

    def memory(self) -> list[tuple[int, float]]:
        """The peak memory of Python workers, in MB, while one partition of `count` records is read."""
        found = []
        for count in self.scale.growth:
            topic = f"growth-{count}"
            self.broker.create_topic(topic, partitions=1)
            rows = self.spark.range(0, count, 1, PARTITIONS).selectExpr("repeat('x', 100) value")
            self.write(OURS, rows, topic, "none")
            self.say(f"memory of workers, {count:,} records")
            frame = self.frame(OURS, topic)
            with Watch() as watch:
                assert frame.count() == count
            found.append((count, watch.peak / 1e6))
            self.broker.delete_topic(topic)
        return found


class Watch:
    """The largest resident memory of any Python worker of this process, sampled by a thread."""

    def __enter__(self) -> Watch:
        import threading

        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "python" in child.name():
                        self.peak = max(self.peak, child.memory_info().rss)
                except psutil.Error:
                    continue


Efforts = dict[str, tuple[float, float]]


def cells(result: Result, efforts: Efforts) -> tuple[str, ...]:
    row = result.row
    by_effort = efforts.get(row.name)
    ours, theirs = statistics.median(result.ours), statistics.median(result.theirs)
    low, high = min(result.ratios), max(result.ratios)
    floor = f"{row.better.value} {row.floor:g}"
    return (
        row.title,
        f"{ours:,.0f} {row.unit}",
        f"{theirs:,.0f} {row.unit}",
        f"{result.ratio:.2f} ({low:.2f} to {high:.2f})",
        "" if result.limit is None else f"{result.limit:.2f}",
        "" if by_effort is None else f"{by_effort[0]:.2f}, bound {by_effort[1]:.2f}",
        floor,
        "pass" if result.holds else "FAIL",
    )


HEAD = ("row", "ours", "Spark's own connector", "ratio (spread)", "bound", "by processor time", "floor", "")


def show(results: list[Result], efforts: Efforts, memory: list[tuple[int, float]], console: Console) -> None:
    table = Table(title="Spark on topics: our source and sink, and Spark's own connector, in turns")
    for name in HEAD:
        table.add_column(name)
    for result in results:
        table.add_row(*cells(result, efforts))
    console.print(table)
    for count, megabytes in memory:
        console.print(f"largest Python worker, one partition of {count:,} records: {megabytes:,.0f} MB")


EXPLAINED = (
    "The bound is the same ratio for a Python source that returns one prepared Arrow batch repeatedly, and",
    "for a Python sink that only counts rows: no broker, no decoding, no encoding. No source or sink in",
    "Python can be faster: Spark converts rows from and to Arrow, and all bytes go once more from process to",
    "process.",
    "",
    "The column by processor time compares the processor time of all processes (the JVM, Python workers,",
    "the broker). Other load on the machine changes it less than the clock, but caches are shared.",
    "",
    "Both connectors compress with their defaults: lz4 in its fast mode; zstd at level 3 in Kafka's client,",
    "at level 1 in ours (`kafka.compression.zstd.level`).",
)


ALONE = (
    "The processor time of our source and sink without Spark (`python -m bench.spark_worker`). The rest of a",
    "row's processor time is Spark's, which the bound contains, too.",
)


def page(
    results: list[Result],
    efforts: Efforts,
    memory: list[tuple[int, float]],
    scale: Scale,
    alone: Iterable[str],
) -> str:
    lines = [
        "# Benchmarks of the Spark source and sink",
        "",
        "Written by `make bench-spark`: one session on `local[2]`, one Barnabas broker, both alternately "
        f"({scale.rounds} rounds of {scale.records:,} records of 100 bytes, half as many of 1 KB; "
        "the broker's files are in memory). The ratio is that of the same round.",
        "",
        *EXPLAINED,
        "",
        *(f"- {name}: {value}" for name, value in machine.description()),
        "",
        "| " + " | ".join(HEAD) + " |",
        "| --- " * len(HEAD) + "|",
        *("| " + " | ".join(cells(result, efforts)) + " |" for result in results),
        "",
        "Memory of the largest Python worker while one partition is read:",
        "",
        "| records | MB |",
        "| --- | --- |",
        *(f"| {count:,} | {megabytes:,.0f} |" for count, megabytes in memory),
        "",
        *ALONE,
        "",
        *alone,
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="little data, two rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="of Spark")
    options = parser.parse_args(arguments)
    missing = spark_connector.available()
    if missing:
        print(f"cannot compare with Spark's own connector: {missing}", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else Scale()
    if options.rounds:
        scale = Scale(scale.records, options.rounds, scale.growth)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
        Broker(Path(folder) / "data", overrides=FORGETS, in_process=False) as broker,
        session(dict(each.split("=", 1) for each in options.conf)) as spark,
        console.status("starting") as status,
    ):
        bench = Bench(spark, broker, scale, status.update)
        results = bench.run(options.rows)
        memory = [] if options.rows else bench.memory()
    show(results, bench.efforts, memory, console)
    if not (options.rows or options.quick or options.conf):
        alone = spark_worker.lines(spark_worker.ROUNDS)
        DOCS.write_text(page(results, bench.efforts, memory, scale, alone))
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m bench.pipeline`: topic to all four zones, against the same steps written by hand, in turns.

In: a broker of ours with a filled topic, one session on `local[2]` for both. Out: a table, and
`docs/benchmarks-pipeline.md`. Also: how long a record takes from produce to a served view, on a pipeline
that runs as `barnabas pipeline run` runs it, and what ten times the data cost.
Does not know: how either side does it (`barnabas.pipeline.flow`, `bench.pipeline_by_hand`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from barnabas.pipeline import (
    Maintenance,
    Pipeline,
    Refined,
    Schema,
    Serving,
    SparkPart,
    Staging,
    TopicSource,
    Trusted,
    View,
    in_range,
    not_null,
    pattern,
)
from barnabas.pipeline.flow import Feed
from barnabas.pipeline.running.asking import serving_url
from barnabas.pipeline.running.run import supervised
from barnabas.pipeline.serving.client import ServingClient, ServingError
from barnabas.pipeline.session import session as pipeline_session
from barnabas.testing import spark_connector
from barnabas.testing.broker import Broker
from bench import machine
from bench.pipeline_by_hand import REFINED, SCHEMA, Job
from bench.rounds import Result
from bench.rows import Better, Row

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-pipeline.md"
PARTITIONS = 4
ZONES = ("raw", "staging", "trusted", "quarantine", "refined")
FLOOR = 1.5
LINEAR = 1.3  # ten times the rows may cost so much more a row
WAIT_S_MAX = 300.0
LOOK_S = 0.005
VALUE = (
    "to_json(named_struct('order_id', concat('o', id), 'customer_id', id % 1000,"
    " 'shop', element_at(array('berlin', 'lisbon', 'oslo'), cast(id % 3 + 1 as int)),"
    " 'product', 'espresso', 'amount', cast(id % 5000 as double) / 7,"
    " 'at', timestamp_millis(1700000000000 + id)))"
)
# One in a hundred is cut off, one in fifty comes twice, one in fifty has an amount that cannot be.
ROWS = (
    'CASE WHEN id % 100 = 0 THEN \'{"order_id": "cut\' WHEN id % 50 = 7 THEN'
    f" replace({VALUE}, '\"amount\":', '\"amount\":-1') ELSE {VALUE} END"
)
TWICE = "explode(CASE WHEN id % 50 = 3 THEN array(1, 2) ELSE array(1) END)"


@dataclass(frozen=True, slots=True)
class Scale:
    rows: int = 500_000
    rows_per_batch: int = 100_000
    rounds: int = 3
    samples: int = 200
    growth: int = 100_000


QUICK = Scale(rows=60_000, rows_per_batch=20_000, rounds=2, samples=30, growth=20_000)


@contextmanager
def session() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(map(str, spark_connector.jars())),
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = pipeline_session(SparkPart(master="local[2]"), ("delta",), "bench", settings)
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def orders(bootstrap: str, topic: str, lake: Path, rows_per_batch: int) -> Pipeline:
    """The steps of `bench.pipeline_by_hand`, as a pipeline says them."""
    return Pipeline(
        name="bench",
        lake=str(lake),
        spark=SparkPart(master="local[2]", settings={"spark.driver.memory": "2g"}),
        sources=[
            TopicSource(
                name="orders",
                bootstrap_servers=bootstrap,
                subscribe=topic,
                schema=Schema(ddl=SCHEMA),
                event_time="at",
                rows_per_batch_max=rows_per_batch,
            )
        ],
        staging=[Staging(name="orders", source="orders", key=["order_id"])],
        trusted=[
            Trusted(
                name="orders",
                staging="orders",
                rules=[not_null("order_id"), in_range("amount", 0, 10_000), pattern("shop", "[a-z]+")],
            )
        ],
        refined=[Refined(name="large", sql=REFINED)],
        maintenance=Maintenance(),
    )


class Bench:
    def __init__(
        self, spark: Any, broker: Broker, scale: Scale, work: Path, say: Callable[[str], None]
    ) -> None:
        self.spark = spark
        self.broker = broker
        self.scale = scale
        self.work = work
        self.say = say
        self._lakes = 0

    def fill(self, topic: str, rows: int) -> int:
        self.say(f"filling {topic} with {rows:,} rows")
        self.broker.create_topic(topic, partitions=PARTITIONS)
        frame = self.spark.range(0, rows, 1, PARTITIONS).selectExpr("id", TWICE)
        frame = frame.selectExpr("cast(id as string) key", f"{ROWS} value")
        kafka = {"kafka.bootstrap.servers": self.broker.bootstrap, "topic": topic}
        frame.write.format("barnabas").options(**kafka).mode("append").save()
        return rows + len(range(3, rows, 50))

    def lake(self) -> Path:
        self._lakes += 1
        return self.work / f"lake-{self._lakes}"

    def ours(self, topic: str, lake: Path) -> None:
        pipeline = orders(self.broker.bootstrap, topic, lake, self.scale.rows_per_batch)
        Feed(self.spark, pipeline, "orders").drain()

    def by_hand(self, topic: str, lake: Path) -> None:
        Job(self.spark, self.broker.bootstrap, topic, lake, self.scale.rows_per_batch).run()

    def counts(self, lake: Path) -> dict[str, int]:
        found = {}
        for zone in ZONES:
            name = "large" if zone == "refined" else "orders"
            path = lake / zone / name if (lake / zone / name).exists() else lake / zone
            found[zone] = self.spark.read.format("delta").load(str(path)).count()
        return found

    def zones(self) -> Result:
        """Rows a second from the topic to all zones; both must have the same rows in each."""
        result = Result(Row("zones", "topic to all four zones", "rows/s", Better.MORE, FLOOR))
        sent = self.fill("zones", self.scale.rows)
        contents = []
        for number in range(-1, self.scale.rounds):  # the first of each warms up
            for name, run, found in (
                ("ours", self.ours, result.ours),
                ("by hand", self.by_hand, result.theirs),
            ):
                self.say(f"zones: {name}, {f'round {number + 1}' if number >= 0 else 'warming up'}")
                lake = self.lake()
                started = time.perf_counter()
                run("zones", lake)
                seconds = time.perf_counter() - started
                if number < 0:
                    contents.append(self.counts(lake))
                else:
                    found.append(sent / seconds)
                shutil.rmtree(lake)
        assert contents[0] == contents[1], f"the zones differ: ours {contents[0]}, by hand {contents[1]}"
        assert contents[0]["raw"] == sent
        return result

    def growth(self) -> tuple[float, float]:
        """Microseconds a row, for so many rows and for ten times as many."""
        found = []
        for times in (1, 10):
            topic = f"growth-{times}"
            sent = self.fill(topic, self.scale.growth * times)
            runs = []
            for _ in range(3 if times == 1 else 1):
                self.say(f"growth: {sent:,} rows")
                lake = self.lake()
                started = time.perf_counter()
                self.ours(topic, lake)
                runs.append((time.perf_counter() - started) / sent * 1e6)
                shutil.rmtree(lake)
            found.append(min(runs))
        return found[0], found[1]


def latencies(broker: Broker, scale: Scale, work: Path, say: Callable[[str], None]) -> list[float]:
    """Seconds from produce to the answer of a served view that has the record, one after the other."""
    from confluent_kafka import Producer

    broker.create_topic("latency", partitions=1)
    pipeline = orders(broker.bootstrap, "latency", work / "latency", 100_000)
    view = View(
        name="shops",
        source="trusted.orders",
        sql="SELECT shop, count(*) AS orders, sum(amount) AS revenue FROM orders GROUP BY shop",
        keys=["shop"],
        measures={"orders": "count", "revenue": "sum"},
    )
    serving = Serving(port=0)
    pipeline = dataclasses.replace(pipeline, views=[view], refined=[], serving=serving)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    found: list[float] = []
    with supervised(pipeline) as supervisor:
        thread = threading.Thread(target=supervisor.run)
        thread.start()
        try:
            for number in range(scale.samples + 10):  # the first ones warm up
                say(f"latency: {number} of {scale.samples + 10}")
                started = time.perf_counter()
                value = f'{{"order_id": "o{number}", "shop": "berlin", "amount": 1.0}}'
                producer.produce("latency", value)
                producer.flush()
                wait_for(pipeline, number + 1)
                if number >= 10:
                    found.append(time.perf_counter() - started)
        finally:
            supervisor.stop()
            thread.join()
    return found


def wait_for(pipeline: Pipeline, count: int) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < deadline:
        url = serving_url(pipeline)
        if url is not None:
            with contextlib.suppress(ServingError), ServingClient(url, patience_s=1.0) as client:
                while time.monotonic() < deadline:
                    rows = client.query("shops")["rows"]
                    if rows and rows[0]["orders"] >= count:
                        return
                    time.sleep(LOOK_S)
        time.sleep(LOOK_S)
    raise TimeoutError(f"the view does not show {count} orders after {WAIT_S_MAX:g} s")


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Found:
    zones: Result | None = None
    latencies: list[float] = dataclasses.field(default_factory=list)
    growth: tuple[float, float] | None = None

    def cells(self) -> Iterator[tuple[str, ...]]:
        if self.zones is not None:
            result = self.zones
            ours, theirs = statistics.median(result.ours), statistics.median(result.theirs)
            spread = f"{min(result.ratios):.2f} to {max(result.ratios):.2f}"
            yield (
                result.row.title,
                f"{ours:,.0f} rows/s",
                f"{theirs:,.0f} rows/s",
                f"{result.ratio:.2f} ({spread})",
                f"≥ {FLOOR:g}",
                verdict(result.holds),
            )
        if self.latencies:
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                value = quantile(self.latencies, share)
                yield f"produce to a served speed view, {name}", f"{value * 1000:,.0f} ms", "", "", "", ""
        if self.growth is not None:
            small, large = self.growth
            ratio = large / small
            cell = f"{small:.1f} µs a row, {large:.1f} µs with ten times the rows"
            yield "growth by ten", cell, "", f"{ratio:.2f}", f"≤ {LINEAR:g}", verdict(ratio <= LINEAR)

    @property
    def holds(self) -> bool:
        zones = self.zones is None or self.zones.holds
        return zones and (self.growth is None or self.growth[1] / self.growth[0] <= LINEAR)


def verdict(holds: bool) -> str:
    return "pass" if holds else "FAIL"


HEAD = ("row", "barnabas", "written by hand", "ratio (spread)", "floor", "")


def page(found: Found, scale: Scale) -> str:
    lines = [
        "# Benchmarks of pipelines",
        "",
        "Written by `make bench-pipeline`: one session on `local[2]`, one broker of ours, both in turns "
        f"({scale.rounds} rounds of {scale.rows:,} orders in batches of {scale.rows_per_batch:,}; some are "
        "cut off, some come twice, some break a rule). Written by hand means "
        "[bench/pipeline_by_hand.py](../bench/pipeline_by_hand.py): Spark's own Kafka connector, structured "
        "streaming and Delta, with the same rows in every zone at the end. The time to a served view is that "
        f"of single records, one after the other ({scale.samples}), on a pipeline that runs as "
        "`barnabas pipeline run` runs it.",
        "",
        *(f"- {name}: {value}" for name, value in machine.description()),
        "",
        "| " + " | ".join(HEAD) + " |",
        "| --- " * len(HEAD) + "|",
        *("| " + " | ".join(cells) + " |" for cells in found.cells()),
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", choices=["zones", "latency", "growth", []], metavar="ROW")
    parser.add_argument("--quick", action="store_true", help="little data, two rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--orders", dest="rows_sent", type=int, help="rows of a round")
    parser.add_argument("--batch", type=int, help="rows of a batch")
    parser.add_argument("--samples", type=int, help="records whose way to a view is measured")
    parser.add_argument("--write", action="store_true", help="write the page whatever was run")
    options = parser.parse_args(arguments)
    missing = spark_connector.available()
    if missing:
        print(f"cannot compare with Spark's own connector: {missing}", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else Scale()
    given = {
        "rounds": options.rounds,
        "rows": options.rows_sent,
        "rows_per_batch": options.batch,
        "samples": options.samples,
    }
    scale = dataclasses.replace(scale, **{name: value for name, value in given.items() if value})
    wanted = options.rows or ["zones", "latency", "growth"]
    console = Console() if sys.stdout.isatty() else Console(width=150)
    found = Found()
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder,
        Broker(in_process=False) as broker,
        console.status("starting") as status,
    ):
        work = Path(folder)
        if {"zones", "growth"} & set(wanted):
            with session() as spark:
                bench = Bench(spark, broker, scale, work, status.update)
                found.zones = bench.zones() if "zones" in wanted else None
                found.growth = bench.growth() if "growth" in wanted else None
        if "latency" in wanted:
            found.latencies = latencies(broker, scale, work, status.update)
    shown = Table(title="Pipelines: topic to zones and views")
    for name in HEAD:
        shown.add_column(name)
    for cells in found.cells():
        shown.add_row(*cells)
    console.print(shown)
    if options.write or (not options.rows and not options.quick):
        DOCS.write_text(page(found, scale))
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

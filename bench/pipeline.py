"""`python -m bench.pipeline`: compares a pipeline with the same steps written by hand, and measures views.

Needs Java. Out: a table, and `docs/benchmarks-pipeline.md`: rows a second from a topic to all four zones
(`bench.pipeline_zones`), the time from produce to a served view (`bench.pipeline_latency`), the cost of ten
times the data, and what a million rows cost on driver and executors while the tables grow
(`bench.pipeline_scale`). Does not know: how either side works.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from barnabas.spark.jars import DELTA_VERSION
from barnabas.testing import spark_connector
from barnabas.testing.broker import Broker
from bench import machine
from bench.pipeline_latency import Latencies, latencies
from bench.pipeline_orders import QUICK, Scale
from bench.pipeline_zones import FLOOR, TIMES, Growth, Zones, session
from bench.rounds import Result

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-pipeline.md"
LINEAR = 1.3  # allowed growth: of the cost of a row with ten times the rows, and of a late batch
HEAD = ("row", "barnabas", "written by hand", "ratio (spread)", "floor", "")
FACTS = ("processor", "memory", "system", "Barnabas", "load average")  # what is known of the machine
MILLIONS_MIN = 4
TRICKLE_MIN = 50  # orders; fewer do not show whether late ones take longer
USUAL = ("zones", "growth", "latency")
PARTS = (*USUAL, "scale")  # 30 million rows: only if asked for
FLAT = 1.1  # allowed growth of what a million rows cost, from the first ones to the last ones


@dataclass(slots=True)
class Found:
    zones: Result | None = None
    zones_by_effort: Result | None = None
    first: dict[str, float] = dataclasses.field(default_factory=dict)
    growth: Growth | None = None
    latencies: Latencies | None = None
    scale: list[dict[str, float]] = dataclasses.field(default_factory=list)  # of each million rows

    def cells(self) -> Iterator[tuple[str, ...]]:
        for result in (self.zones, self.zones_by_effort):
            if result is not None:
                yield compared_cells(result)
        if self.zones is not None:
            ours, theirs = self.first["ours"], self.first["by hand"]
            cells = (f"{ours:,.0f} rows/s", f"{theirs:,.0f} rows/s", f"{ours / theirs:.2f}", "", "")
            yield ("first run of each in the session, ours before the other", *cells)
        if self.latencies is not None:
            yield from self._latency_cells(self.latencies)
        if self.growth is not None:
            yield from self._growth_cells(self.growth)
        if len(self.scale) >= MILLIONS_MIN:
            yield from scale_cells(self.scale)

    @staticmethod
    def _latency_cells(found: Latencies) -> Iterator[tuple[str, ...]]:
        for name, values in (
            (f"one order after the other ({len(found.trickle)})", found.trickle),
            (f"{found.rate:,.0f} orders a second ({len(found.steady):,})", found.steady),
        ):
            for share in (0.5, 0.99):
                title = f"produce to a served speed view, {name}, p{share * 100:.0f}"
                yield title, f"{quantile(values, share) * 1000:,.0f} ms", "", "", "", ""
        if len(found.trickle) < TRICKLE_MIN:
            return
        early, late = found.early_and_late
        yield growth_row(
            "a batch of one order, the last fifth by the first", early, late, 1000, "ms, then {} ms"
        )

    @staticmethod
    def _growth_cells(found: Growth) -> Iterator[tuple[str, ...]]:
        many = f"µs a row, {{}} with {TIMES} times the rows"
        title = f"topic to all zones, {found.rows:,} rows and {TIMES} times as many"
        yield growth_row(title, *found.zones, 1, many)
        yield growth_row("batch layer of a view over them", *found.view, 1, many)
        yield growth_row("a late batch by an early one of the many", *found.batches, 1000, "ms, then {} ms")

    @property
    def holds(self) -> bool:
        return all(cells[-1] != "FAIL" for cells in self.cells())


def compared_cells(result: Result) -> tuple[str, ...]:
    ours, theirs = statistics.median(result.ours), statistics.median(result.theirs)
    spread = f"{min(result.ratios):.2f} to {max(result.ratios):.2f}"
    return (
        f"{result.row.title}, warm",
        f"{ours:,.0f} rows/s",
        f"{theirs:,.0f} rows/s",
        f"{result.ratio:.2f} ({spread})",
        f"≥ {FLOOR:g}",
        verdict(result.holds),
    )


def scale_cells(scale: list[dict[str, float]]) -> Iterator[tuple[str, ...]]:
    """What the first millions cost, and the last ones, without those that warm up."""
    warm = [each for each in scale if each["is_warm"]]
    span = max(len(warm) // 3, 1)
    first, last = warm[:span], warm[-span:]
    count = len(scale)
    for name, title, unit in (
        ("driver_s", "a million rows, processor time of the driver", "s"),
        ("executors_s", "a million rows, processor time of the executors", "s"),
        ("heap_mb", "memory of the driver's Java machine after a million rows", "MB"),
        ("python_mb", "memory of the driver's Python process after a million rows", "MB"),
    ):
        before, after = (statistics.median(each[name] for each in some) for some in (first, last))
        shown = f"{number(before)} {unit}, then {number(after)} {unit}"
        where = f"{title}, the last {span} of {count} by the first"
        yield where, shown, "", f"{after / before:.2f}", f"≤ {FLAT:g}", verdict(after / before <= FLAT)


def scaled(scale: Scale, folder: Path | None, say: Callable[[str], None]) -> list[dict[str, float]]:
    """Measure in a process of its own: it has another kind of Spark session."""
    command = [sys.executable, "-m", "bench.pipeline_scale"]
    command += ["--millions", str(scale.millions), "--batch", str(scale.scale_batch)]
    if folder is not None:
        command += ["--folder", str(folder)]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found.append(json.loads(line))
            spent = found[-1]
            seconds = f"driver {spent['driver_s']:.1f} s, executors {spent['executors_s']:.1f} s"
            say(f"scale: million {spent['million']:.0f}: {seconds}")
    assert process.returncode == 0, "bench.pipeline_scale failed"
    return found


def growth_row(title: str, before: float, after: float, times: float, text: str) -> tuple[str, ...]:
    shown = f"{number(before * times)} {text.format(number(after * times))}"
    ratio = after / before
    return title, shown, "", f"{ratio:.2f}", f"≤ {LINEAR:g}", verdict(ratio <= LINEAR)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def verdict(holds: bool) -> str:
    return "pass" if holds else "FAIL"


def page(found: Found, scale: Scale) -> str:
    rounds = len(found.zones.ours) if found.zones else 0
    lines = [
        "# Benchmarks of pipelines",
        "",
        "Written by `make bench-pipeline`: one session on `local[2]` for both, one Barnabas broker, both "
        f"alternately ({rounds} rounds of {scale.rows:,} orders in batches of {scale.rows_per_batch:,} after "
        "one warm-up; some are truncated, some are sent twice, some break a rule). Written by hand means "
        "[bench/pipeline_by_hand.py](../bench/pipeline_by_hand.py): Spark's own Kafka connector, structured "
        "streaming and Delta, exactly once as well, with the same rows in every zone at the end (compared). "
        "The time to a served view is that of orders on a pipeline that runs as `barnabas pipeline run` runs "
        "it; a client queries the view over HTTP fifty times a second. Orders are sent one after the other, "
        "so that each is a batch of its own, and at a steady rate. Growth is per row: 1 or less is linear. "
        f"What a million rows cost is measured on a `local-cluster`, whose executors are processes of their "
        f"own, with random keys in batches of {scale.scale_batch:,} and a horizon of a million keys, over "
        f"{len(found.scale)} million rows.",
        "",
        *(f"- {name}: {value}" for name, value in machine.description() if name in FACTS),
        f"- Spark: {version('pyspark')}, Delta Lake {DELTA_VERSION}",
        "",
        "| " + " | ".join(HEAD) + " |",
        "| --- " * len(HEAD) + "|",
        *("| " + " | ".join(cells) + " |" for cells in found.cells()),
        "",
    ]
    return "\n".join(lines)


@contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """Show progress: one line that changes on a terminal, otherwise lines with the time."""
    started = time.monotonic()
    if console.is_terminal:
        with console.status("starting") as status:

            def show(text: str) -> None:
                if ": " in text and ("rows/s" in text or "µs" in text):
                    console.print(text)
                status.update(text)

            yield show
        return
    yield lambda text: print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)


def measure(
    wanted: list[str], scale: Scale, say: Callable[[str], None], folder_of_scale: Path | None = None
) -> Found:
    found = Found()
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder, Broker(in_process=False) as broker:
        if {"zones", "growth"} & set(wanted):
            say("starting Spark")
            with session() as spark:
                zones = Zones(spark, broker, scale, Path(folder), say)
                if "zones" in wanted:
                    found.zones, found.first = zones.compare(), zones.first
                    found.zones_by_effort = zones.by_effort
                if "growth" in wanted:
                    found.growth = zones.growth()
        if "latency" in wanted:
            found.latencies = latencies(broker, scale, Path(folder), say)
    if "scale" in wanted:
        found.scale = scaled(scale, folder_of_scale, say)
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="little data, two rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--orders", dest="rows", type=int, help="rows of a round")
    parser.add_argument("--batch", dest="rows_per_batch", type=int, help="rows of a batch")
    parser.add_argument("--samples", type=int, help="orders whose way to a view is measured one by one")
    parser.add_argument("--millions", type=int, help="millions of rows whose cost is measured one by one")
    parser.add_argument("--folder", type=Path, help="of scale: keep everything here, and go on from there")
    parser.add_argument("--minutes", type=float, help="approximate limit; slow machines run fewer rounds")
    parser.add_argument("--write", action="store_true", help="write the page whatever was run")
    options = parser.parse_args(arguments)
    missing = spark_connector.available()
    if missing:
        print(f"cannot compare with Spark's own connector: {missing}", file=sys.stderr)
        return 2
    given = {field.name: getattr(options, field.name, None) for field in dataclasses.fields(Scale)}
    scale = dataclasses.replace(
        QUICK if options.quick else Scale(), **{name: value for name, value in given.items() if value}
    )
    console = Console() if sys.stdout.isatty() else Console(width=150)
    with progress(console) as say:
        found = measure(options.parts or list(USUAL), scale, say, options.folder)
    shown = Table(title="Pipelines: topic to zones and views")
    for name in HEAD:
        shown.add_column(name)
    for cells in found.cells():
        shown.add_row(*cells)
    console.print(shown)
    if options.write or (not options.parts and not options.quick):
        DOCS.write_text(page(found, scale))
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

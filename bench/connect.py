"""`python -m bench.connect`: workers of Connect, ours and Apache's, one after the other on the same broker.

In: the number of lines. Out: a table, and `docs/benchmarks-connect.md`. FileStream reads and writes lines of
100 bytes; JSON with schemas goes through three transforms on its way into a topic and out of it; the JDBC
source reads a table beside a reader by hand. Rates are records for each second of the worker's processor
time: the machine may do other work. `--quick` takes a third of the lines.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.pipeline.demo import postgres
from barnabas.testing.broker import Broker
from bench import connect_tables, machine
from bench.connect_workers import Worker

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-connect.md"
MEMORY = Path("/dev/shm")
APACHE_FILE = "org.apache.kafka.connect.file.FileStream"
TRANSFORMS = "org.apache.kafka.connect.transforms."
JSON = "org.apache.kafka.connect.json.JsonConverter"
IDLE = 100
IDLE_S = 10.0
LINE = "order %09d " + "x" * 83
OURS, THEIRS, BY_HAND = "barnabas", "apache", "by hand"
LINES, LINES_QUICK = 300_000, 100_000
JDBC = "JDBC source of PostgreSQL, JSON with schemas"
INTO = {
    "value.converter": JSON, "transforms": "hoist,topic,mask",
    "transforms.hoist.type": f"{TRANSFORMS}HoistField$Value", "transforms.hoist.field": "line",
    "transforms.topic.type": f"{TRANSFORMS}InsertField$Value", "transforms.topic.topic.field": "origin",
    "transforms.topic.static.field": "site", "transforms.topic.static.value": "north",
    "transforms.mask.type": f"{TRANSFORMS}ReplaceField$Value", "transforms.mask.renames": "site:place",
}  # fmt: skip
OUT_OF = {
    "value.converter": JSON, "transforms": "time,text,drop",
    "transforms.time.type": f"{TRANSFORMS}InsertField$Value", "transforms.time.timestamp.field": "at",
    "transforms.text.type": f"{TRANSFORMS}TimestampConverter$Value", "transforms.text.field": "at",
    "transforms.text.target.type": "string", "transforms.text.format": "yyyy-MM-dd HH:mm:ss",
    "transforms.drop.type": f"{TRANSFORMS}ReplaceField$Value", "transforms.drop.exclude": "origin",
}  # fmt: skip


def end_of(bootstrap: str, topic: str) -> int:
    async def ask() -> int:
        cluster = Cluster(parse_bootstrap(bootstrap))
        try:
            await cluster.retrying(cluster.refresh)
            place = TopicPartition(topic, 0)
            found = (await Admin(cluster).list_offsets({place: OffsetSpec.LATEST}))[place]
            return found.offset if isinstance(found, FoundOffset) else 0
        except Exception:
            return 0  # there is no such topic yet
        finally:
            await cluster.close()

    return asyncio.run(ask())


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


NOTES = (
    "- A connector starts when its task runs, counted from the request that creates it; the status is asked"
    " every 10 ms. A worker starts when it takes part in its group, counted from the start of its process.",
    "- Confluent's JDBC source is not on Maven Central. The reader by hand has psycopg with a cursor of the"
    " server, orjson and confluent-kafka; it keeps no offsets and survives nothing.",
    "- The memory of idle connectors is what 100 more FileStream sources add to a worker that has done"
    " nothing before but start one.",
)


class Run:
    def __init__(self, worker: Worker, bootstrap: str, folder: Path, lines: int) -> None:
        self._worker = worker
        self._bootstrap = bootstrap
        self._folder = folder
        self._lines = lines
        self.rates: dict[str, float] = {}
        self.numbers: dict[str, float] = {}

    def measure(self, source: Path) -> None:
        worker, name = self._worker, self._worker.name
        self.numbers["start of a worker, s"] = worker.start_s
        plain, typed = f"{name}-plain", f"{name}-json"
        read = {"connector.class": f"{APACHE_FILE}SourceConnector", "file": str(source), "batch.size": "2000"}
        write = {"connector.class": f"{APACHE_FILE}SinkConnector"}
        for title, config, reached in (
            ("FileStream source", {**read, "topic": plain}, lambda: end_of(self._bootstrap, plain)),
            ("FileStream sink", {**write, "topics": plain}, None),
            (
                "JSON with schemas, three transforms, source",
                {**read, **INTO, "topic": typed},
                lambda: end_of(self._bootstrap, typed),
            ),
            ("JSON with schemas, three transforms, sink", {**write, **OUT_OF, "topics": typed}, None),
        ):
            self._one(title, dict(config), reached)

    def idle(self, worker: Worker) -> None:
        """A worker that has done nothing else: what it freed before would hold the new connectors."""

        def create(number: int) -> float:
            path = self._folder / f"{worker.name}-{number}"
            path.write_text("")
            config = {"connector.class": f"{APACHE_FILE}SourceConnector", "file": str(path)}
            return worker.create(f"idle{number}", {**config, "topic": worker.name})

        self.numbers["start of the first connector, s"] = create(0)
        self.numbers["memory of a worker with one connector, MiB"] = before = worker.memory_mib
        starts = [create(number) for number in range(1, IDLE + 1)]
        self.numbers[f"start of a connector, median of {IDLE}, s"] = statistics.median(starts)
        self.numbers[f"memory of {IDLE} more idle connectors, MiB"] = worker.memory_mib - before
        used = worker.cpu_s
        time.sleep(IDLE_S)
        self.numbers[f"processor of {IDLE} idle connectors, % of a core"] = (
            (worker.cpu_s - used) / IDLE_S * 100
        )

    def _one(self, title: str, config: dict[str, str], reached: Callable[[], int] | None) -> None:
        """Two runs: the second one counts, because its code is warm."""
        for part in ("warm", "run"):
            self.rates[title] = self._once(f"{part}-{title[:4]}-{len(self.rates)}", config, reached)
            print(f"{self._worker.name}: {title} ({part}): {self.rates[title]:,.0f} records/s of a core")

    def _once(self, name: str, config: dict[str, str], reached: Callable[[], int] | None) -> float:
        out = self._folder / f"{self._worker.name}-out"
        out.unlink(missing_ok=True)
        before = 0 if reached is None else reached()
        wanted = self._lines if reached is not None else 2 * self._lines  # the topic has both runs

        def is_done() -> bool:
            return (lines_of(out) if reached is None else reached() - before) >= wanted

        used = self._worker.cpu_s
        self._worker.create(name, {**config, "file": str(out)} if reached is None else config)
        self._worker.until(is_done)
        used = self._worker.cpu_s - used
        self._worker.delete(name)
        return wanted / used


def tables(worker: Worker, bootstrap: str, rows: int) -> dict[str, float]:
    """Rates of the JDBC source and of a reader by hand; none where there is no PostgreSQL."""
    if reason := postgres.available():
        print(f"no JDBC source: {reason}")
        return {}
    with postgres.Postgres(password="bench") as server:
        connect_tables.made(server, rows)
        ours = connect_tables.by_worker(worker, server, rows, lambda topic: end_of(bootstrap, topic))
        return {OURS: ours, BY_HAND: connect_tables.by_hand(server, bootstrap, rows)}


def page(found: dict[str, Run], lines: int, rates: dict[str, float]) -> str:
    rows = [
        "# Benchmarks of Connect",
        "",
        "`make bench-connect` writes this page: workers of both kinds, one after the other, on one Barnabas "
        f"broker. {lines:,} lines of 100 bytes; records for each second of the worker's processor time, "
        "second of two runs. `--quick` takes a third of the lines.",
        "",
        "| | Barnabas | Apache Connect | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    ours, theirs = found[OURS], found.get(THEIRS)
    for title, rate in ours.rates.items():
        other = theirs.rates[title] if theirs is not None else 0.0
        ratio = f"{rate / other:.1f}x" if other else "-"
        rows.append(f"| {title}, records/s of a core | {rate:,.0f} | {other:,.0f} | {ratio} |")
    if rates:
        ratio = rates[OURS] / rates[BY_HAND]
        hand = f"{rates[BY_HAND]:,.0f} by hand"
        rows.append(f"| {JDBC}, rows/s of a core | {rates[OURS]:,.0f} | {hand} | {ratio:.1f}x |")
    for title, number in ours.numbers.items():
        other = theirs.numbers[title] if theirs is not None else 0.0
        digits = 2 if title.startswith("start") else 1
        rows.append(f"| {title} | {number:,.{digits}f} | {other:,.{digits}f} | |")
    rows += ["", *NOTES, "", "## Machine", "", "| | |", "| --- | --- |"]
    rows += [f"| {name} | {text} |" for name, text in machine.description()]
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=0, help=f"{LINES:,} unless --quick")
    parser.add_argument("--quick", action="store_true", help=f"{LINES_QUICK:,} lines")
    parser.add_argument("--only", choices=(OURS, THEIRS))
    options = parser.parse_args()
    lines = options.lines or (LINES_QUICK if options.quick else LINES)
    found: dict[str, Run] = {}
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        folder = Path(place)
        source = folder / "lines.txt"
        source.write_text("".join(LINE % number + "\n" for number in range(lines)))
        with Broker(folder / "data", in_process=False) as broker:
            for name in (OURS, THEIRS) if options.only is None else (options.only,):
                worker = Worker(name, folder / name, broker.bootstrap, is_apache=name == THEIRS)
                try:
                    run = found[name] = Run(worker, broker.bootstrap, folder, lines)
                    run.measure(source)
                    if name == OURS:
                        rates = tables(worker, broker.bootstrap, lines)
                finally:
                    worker.stop()
                fresh = f"{name}-idle"
                worker = Worker(fresh, folder / fresh, broker.bootstrap, is_apache=name == THEIRS)
                try:
                    run.idle(worker)
                finally:
                    worker.stop()
    if options.only is None:
        PAGE.write_text(page(found, lines, rates))
        print(PAGE.read_text())


if __name__ == "__main__":
    main()

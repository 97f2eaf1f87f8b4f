"""`python -m bench.streams`: our streams against Java Kafka Streams, Faust and Quix Streams, on one broker.

In: how many records. Out: a table, and `docs/benchmarks-streams.md`. Word count, enrichment and a windowed
join over a backlog, records a second and for each second of processor time; our latency at a steady rate.
Every side runs in its own process on the same Barnabas broker, one after the other.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.client.blocking import run
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.jars import cache_folder
from barnabas.testing.broker import Broker
from bench import machine, streams_latency, streams_load
from bench.streams_sides import Application, Ran, java_command, measure, our_command

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-streams.md"
MEMORY = Path("/dev/shm")
SOURCES = {"words": ["lines"], "join": ["orders", "payments"], "enrich": ["clicks"], "minutes": ["clicks"]}
RESULTS = {
    "words": "counts",
    "join": "paid",
    "enrich": "enriched",
    "minutes": "minutes",
    "stateless": "upper",
}
PEERS = {"faust": ("faust-streaming>=0.15,<1", "aiokafka[lz4]"), "quix": ("quixstreams>=3.20,<4",)}
IDLE_QUERIES = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison: our topology with another side's. `share`: of the records, for sides that are slow."""

    name: str
    title: str
    ours: str
    peer: str
    theirs: str
    floor: float
    share: float = 1.0


ROWS = (
    Row("words", "word count, built-in functions", "words", "java", "words", 1.0),
    Row("enrich", "enrichment by a global table, built-in functions", "enrich", "java", "enrich", 1.0),
    Row(
        "enrich-table",
        "enrichment by a table, built-in functions",
        "enrich-table",
        "java",
        "enrich-table",
        1.0,
    ),
    Row("minutes", "windowed count, built-in functions", "minutes", "java", "minutes", 1.0),
    Row("join", "windowed join of two streams, our own operator", "join", "java", "join", 0.25),
    Row("words-python", "word count, functions in Python", "words-python", "java", "words", 0.25),
    Row("enrich-python", "enrichment, functions in Python", "enrich-python", "java", "enrich", 0.25),
    Row("words-faust", "word count, against Faust", "words", "faust", "words", 3.0, 0.002),
    Row("words-quix", "word count, against Quix Streams", "words", "quix", "words", 3.0, 0.01),
)


@dataclass(slots=True)
class Result:
    row: Row
    records: int
    ours: list[Ran] = field(default_factory=list)
    theirs: list[tuple[int, Ran]] = field(default_factory=list)
    problem: str = ""

    def rates(self) -> tuple[float, float]:
        """Thousands of records a second, ours and theirs."""
        ours = statistics.median(self.records / each.seconds for each in self.ours) / 1e3
        theirs = statistics.median(count / each.seconds for count, each in self.theirs) / 1e3
        return ours, theirs

    def by_processor(self) -> float:
        """The ratio of records for each second of processor time, of application and broker."""
        ours = statistics.median(self.records / (each.processor_s + each.broker_s) for each in self.ours)
        theirs = statistics.median(n / (each.processor_s + each.broker_s) for n, each in self.theirs)
        return ours / theirs


class Bench:
    def __init__(self, broker: Broker, records: int, guarantee: str, say: Callable[[str], None]) -> None:
        self.broker, self.records, self.guarantee, self.say = broker, records, guarantee, say
        self.cluster = WorkerCluster(ClientSettings(broker.bootstrap))
        self._filled: dict[tuple[str, int], str] = {}
        self._folder = tempfile.mkdtemp(prefix="bench-streams-java-")
        self._commands: dict[str, list[str]] = {"ours": our_command()}
        self._measured: dict[tuple[str, str, int], Ran] = {}
        self._number = 0

    def command(self, side: str) -> list[str]:
        if side not in self._commands:
            self._commands[side] = java_command(Path(self._folder)) if side == "java" else peer_command(side)
        return self._commands[side]

    def fill(self, topic: str, count: int) -> None:
        """One topic of a name at a time: with another count it is created again."""
        if self._filled.get((topic, count)):
            return
        self.create(topic)
        self.say(f"filling {topic} with {count:,} records")
        streams_load.fill(self.cluster, topic, count)
        self._filled = {key: value for key, value in self._filled.items() if key[0] != topic}
        self._filled[topic, count] = topic

    def create(self, topic: str) -> None:
        if topic in run(self.cluster.topics(None)):
            self.broker.delete_topic(topic)
        self.broker.create_topic(topic, partitions=2)

    def run_side(self, side: str, topology: str, records: int) -> Ran:
        """Records of one side, over a backlog of its own."""
        kind = topology.removesuffix("-python")
        known = self._measured.get((side, topology, records))
        if known is not None:
            return known
        sources = [*SOURCES.get(kind, ["clicks"]), *(["users"] if kind == "enrich-table" else [])]
        for topic in dict.fromkeys([*sources, *(["users"] if "enrich" in kind else [])]):
            halves = topic in ("orders", "payments")
            self.fill(topic, streams_load.USERS if topic == "users" else records // 2 if halves else records)
        self.create(RESULTS.get(kind, "enriched"))
        self._number += 1
        group = f"{side}-{topology}-{self._number}"
        self.say(f"{side}: {topology}")
        name = topology if side == "ours" else kind
        results = None
        if side not in ("ours", "java"):
            results = RESULTS[kind], records * streams_load.WORDS_A_LINE
        servers, pid = self.broker.bootstrap, self.broker.pid
        ran = measure(
            self.command(side),
            name,
            self.cluster,
            servers,
            pid,
            group,
            sources,
            self.guarantee,
            results=results,
        )
        self.forget(group)
        self._measured[side, topology, records] = ran
        return ran

    def forget(self, group: str) -> None:
        """Delete the internal topics of an application that ended."""
        for topic in run(self.cluster.topics(None)):
            if group in topic:
                self.broker.delete_topic(topic)

    def row(self, row: Row) -> Result:
        result = Result(row, self.records)
        try:
            theirs = max(5_000, int(self.records * row.share))
            result.theirs.append((theirs, self.run_side(row.peer, row.theirs, theirs)))
            result.ours.append(self.run_side("ours", row.ours, self.records))
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            result.problem = str(error).strip().splitlines()[-1][:300] if str(error) else type(error).__name__
        return result

    def latency(self, topology: str, rate: int, seconds: float) -> dict[str, float]:
        """Percentiles of our own application at a steady rate."""
        for topic in ("clicks", RESULTS[topology]):
            self.create(topic)
        self._filled = {}
        self._number += 1
        group = f"latency-{topology}-{self._number}"
        self.say(f"latency: {topology}, {rate:,} records a second")
        with tempfile.TemporaryDirectory(prefix="bench-streams-", dir=MEMORY) as folder:
            arguments = [topology, self.broker.bootstrap, group, f"{folder}/state", self.guarantee]
            application = Application(our_command(), arguments, Path(folder) / "log")
            try:
                application.wait_until_running()
                found = streams_latency.measure(
                    self.broker.bootstrap, "clicks", RESULTS[topology], rate, seconds
                )
            finally:
                application.close()
        self.forget(group)
        return found

    def idle(self, seconds: float) -> dict[str, float]:
        """What an application of many queries without records costs: the share of one processor."""
        self.say(f"{IDLE_QUERIES} idle queries")
        with tempfile.TemporaryDirectory(prefix="bench-streams-", dir=MEMORY) as folder:
            found = {}
            for name in ("idle-1", f"idle-{IDLE_QUERIES}"):
                for number in range(int(name.rpartition("-")[2])):
                    topic = f"quiet-{number}"
                    if topic not in run(self.cluster.topics(None)):
                        self.broker.create_topic(topic, partitions=1)
                arguments = [name, self.broker.bootstrap, f"app-{name}", f"{folder}/state", self.guarantee]
                application = Application(our_command(), arguments, Path(folder) / "log")
                try:
                    application.wait_until_running()
                    time.sleep(5)
                    before = application.processor_s()
                    time.sleep(seconds)
                    found[name] = (application.processor_s() - before) / seconds
                    found[f"{name} MB"] = application.memory_mb()
                finally:
                    application.close()
        return found


def peer_command(side: str) -> list[str]:
    """The Python of a venv with a library of PyPI, made at the first use, and the program."""
    folder = cache_folder(f"streams-{side}")
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
        subprocess.run([str(python), "-m", "pip", "-q", "install", *PEERS[side]], check=True, timeout=600)
        (folder / "ready").touch()
    return [str(python), str(Path(__file__).parent / f"streams_{side}.py")]


def cells(result: Result) -> tuple[str, ...]:
    row = result.row
    floor = f"≥ {row.floor:g}"
    if result.problem or not result.ours or not result.theirs:
        return (row.title, row.peer, "-", "-", f"not measured: {result.problem}", "", floor, "")
    ours, theirs = result.rates()
    ratio = ours / theirs
    return (
        row.title,
        row.peer,
        f"{ours:,.0f}",
        f"{theirs:,.0f}",
        f"{ratio:.2f}",
        f"{result.by_processor():.2f}",
        floor,
        "pass" if ratio >= row.floor else "FAIL",
    )


HEAD = (
    "row",
    "against",
    "ours, k records/s",
    "theirs, k records/s",
    "ratio",
    "by processor time",
    "floor",
    "",
)
EXPLAINED = """
Every side reads the same topics of two partitions from the same Barnabas broker, in a process of its own,
one after the other: ours on `local[2]`, Java Kafka Streams 4.3.1 with two threads, a heap of 1 GiB and a
commit interval of a second, Faust and Quix Streams as their documents begin. The clock runs from the moment
at which the application says that it runs until its group has committed the end of every topic that it
reads, repartition topics included. Starts of Spark's Python workers and Java's compiler are in it. The
ratio by processor time counts the application's and the broker's seconds together: other work on the
machine changes it less.

Faust gets a five-hundredth of the records, Quix Streams a hundredth: their rates do not depend on how many
there are. Their clock stops when every result is written, which is one for each word.
"""


def page(results: list[Result], latency: dict[str, dict[str, float]], args: argparse.Namespace) -> str:
    lines = ["# Benchmarks of streams", "", f"Written by `make bench-streams`, {args.records:,} records"]
    lines += [f"({args.guarantee}).", *EXPLAINED.splitlines(), ""]
    lines += [*(f"- {name}: {value}" for name, value in machine.description()), ""]
    lines += ["| " + " | ".join(HEAD) + " |", "| --- " * len(HEAD) + "|"]
    lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    lines += ["", "## Latency", ""]
    lines += ["| what | p50, ms | p99, ms | floor | |", "| --- | --- | --- | --- | --- |"]
    for name, (p50_max, p99_max) in LATENCY.items():
        if (found := latency.get(name)) is not None:
            holds = found["p50"] < p50_max and (p99_max is None or found["p99"] < p99_max)
            floor = f"p50 < {p50_max}" + ("" if p99_max is None else f", p99 < {p99_max}")
            shown = f"{found['p50']:.0f} | {found['p99']:.0f} | {floor} | {'pass' if holds else 'FAIL'} |"
            lines.append(f"| {name}, {found['rate']:,.0f} records/s | {shown}")
    if (idle := latency.get("idle")) is not None:
        lines += ["", "## Idle queries", "", "| queries | share of a processor | MB |", "| --- | --- | --- |"]
        for name in ("idle-1", f"idle-{IDLE_QUERIES}"):
            lines.append(f"| {name[5:]} | {100 * idle[name]:.1f} % | {idle[f'{name} MB']:,.0f} |")
    return "\n".join([*lines, ""])


LATENCY: dict[str, tuple[int, int | None]] = {"stateless": (400, 1000), "minutes": (1000, None)}


def say(text: str) -> None:
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(row.name for row in ROWS)}, latency, idle")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--guarantee", default="at_least_once")
    parser.add_argument("--no-page", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.records, args.seconds = min(args.records, 1_000_000), min(args.seconds, 15.0)
    results: list[Result] = []
    latency: dict[str, dict[str, float]] = {}
    with Broker(tempfile.mkdtemp(prefix="bench-streams-", dir=MEMORY), in_process=False) as broker:
        bench = Bench(broker, args.records, args.guarantee, say)
        if not args.rows or "latency" in args.rows:
            for name in LATENCY:
                try:
                    latency[name] = bench.latency(name, args.rate, args.seconds)
                except RuntimeError as error:
                    say(f"{name}: not measured: {error}")
                    continue
                say(f"{name}: {latency[name]}")
        if not args.rows or "idle" in args.rows:
            latency["idle"] = bench.idle(args.seconds / 2)
            say(f"idle: {latency['idle']}")
        for row in ROWS:
            if not args.rows or row.name in args.rows:
                results.append(bench.row(row))
                print(*cells(results[-1]), sep=" | ", flush=True)
                if not args.no_page:
                    PAGE.write_text(page(results, latency, args))


if __name__ == "__main__":
    main()

"""`python -m bench.streams`: our streams against Java Kafka Streams, Faust and Quix Streams, on one broker.

In: how many records, how long a side may take. Out: a table, and `docs/benchmarks-streams.md`. Word count,
enrichment, windowed counts and joins over a backlog, records a second and for each second of processor time;
our latency at a steady rate; the cost of idle queries. Every side runs in its own process on the same
Barnabas broker, one after the other.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.client.blocking import run
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.jars import cache_folder
from barnabas.testing.broker import Broker
from bench import streams_latency, streams_load
from bench.streams_page import LATENCY, Found, Measured, Row, cells, page
from bench.streams_sides import (
    COMMIT_MS,
    Application,
    Ran,
    java_command,
    measure,
    our_command,
    progress_of_group,
    progress_of_results,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-streams.md"
FOUND = cache_folder("streams-bench") / "found.pickle"  # for `--continue`
MEMORY = Path("/dev/shm")
AT_LEAST, EXACTLY = "at_least_once", "exactly_once_v2"
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
PEER_RECORDS = {"faust": 0.002, "quix": 0.01}  # their share of the records: they are slow

ROWS = (
    Row("words", "word count, built-in functions", "words", "java", "words", 1.0),
    Row("enrich", "enrichment by a global table, built-in functions", "enrich", "java", "enrich", 1.0),
    Row("join", "windowed join of two streams, our own operator", "join", "java", "join", 0.25),
    Row("minutes", "windowed count, built-in functions", "minutes", "java", "minutes", 1.0),
    Row(
        "enrich-table",
        "enrichment by a table, built-in functions",
        "enrich-table",
        "java",
        "enrich-table",
        1.0,
    ),
    Row("words-python", "word count, functions in Python", "words-python", "java", "words", 0.25),
    Row("enrich-python", "enrichment, functions in Python", "enrich-python", "java", "enrich", 0.25),
    *(
        Row(f"{name}-exactly", f"{title}, exactly once", name, "java", name, floor, EXACTLY)
        for name, title, floor in (
            ("words", "word count", 1.0),
            ("enrich", "enrichment by a global table", 1.0),
            ("join", "windowed join", 0.25),
        )
    ),
    Row("words-faust", "word count, against Faust", "words", "faust", "words", 3.0),
    Row("words-quix", "word count, against Quix Streams", "words", "quix", "words", 3.0),
)


class Bench:
    def __init__(self, broker: Broker, records: int, limit_s: float, say: Callable[[str], None]) -> None:
        self.broker, self.records, self.limit_s, self.say = broker, records, limit_s, say
        self.cluster = WorkerCluster(ClientSettings(broker.bootstrap))
        self._filled: dict[tuple[str, int], str] = {}
        self._folder = tempfile.mkdtemp(prefix="bench-streams-java-")
        self._commands: dict[str, list[str]] = {"ours": our_command()}
        self._measured: dict[tuple[str, str, str], Measured] = {}
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

    def run_side(self, side: str, topology: str, guarantee: str) -> Measured:
        """One side over a backlog of its own; a side that several rows name runs once."""
        known = self._measured.get((side, topology, guarantee))
        if known is not None:
            return known
        records = max(5_000, int(self.records * PEER_RECORDS.get(side, 1.0)))
        kind = topology.removesuffix("-python")
        sources = [*SOURCES.get(kind, ["clicks"]), *(["users"] if kind == "enrich-table" else [])]
        for topic in dict.fromkeys([*sources, *(["users"] if "enrich" in kind else [])]):
            halves = topic in ("orders", "payments")
            self.fill(topic, streams_load.USERS if topic == "users" else records // 2 if halves else records)
        self.create(RESULTS.get(kind, "enriched"))
        self._number += 1
        group = f"{side}-{topology}-{self._number}"
        self.say(f"{side}: {topology}, {guarantee}")
        ran = self._run(side, topology, guarantee, group, sources, records)
        self.forget(group)
        self.say(f"{side}: {topology}: {ran.share:.0%} in {ran.seconds:.1f} s")
        found = self._measured[side, topology, guarantee] = Measured(records, ran)
        return found

    def _run(
        self, side: str, topology: str, guarantee: str, group: str, sources: list[str], records: int
    ) -> Ran:
        cluster, servers = self.cluster, self.broker.bootstrap
        if side in PEERS:  # a program of a single topology; it tells nobody what it has committed
            arguments = [servers, group, "{state}"]
            count = records * streams_load.WORDS_A_LINE
            progress = lambda: progress_of_results(cluster, RESULTS[topology], count)  # noqa: E731
        else:
            name = topology if side == "ours" else topology.removesuffix("-python")
            arguments = [name, servers, group, "{state}", guarantee, str(COMMIT_MS)]
            progress = lambda: progress_of_group(  # noqa: E731
                cluster, group, sources, is_exactly_once=guarantee == EXACTLY
            )
        return measure(self.command(side), arguments, progress, self.broker.pid, self.limit_s)

    def forget(self, group: str) -> None:
        """Delete the internal topics of an application that ended."""
        for topic in run(self.cluster.topics(None)):
            if group in topic:
                self.broker.delete_topic(topic)

    def row(self, row: Row) -> Found:
        found = Found(row)
        try:
            found.theirs = self.run_side(row.peer, row.theirs, row.guarantee)
            found.ours = self.run_side("ours", row.ours, row.guarantee)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            found.problem = str(error).strip().splitlines()[-1][:300] if str(error) else type(error).__name__
            self.say(f"{row.name}: {found.problem}")
        return found

    def latency(self, topology: str, rate: int, seconds: float) -> dict[str, float]:
        """Percentiles of our own application at a steady rate."""
        for topic in ("clicks", RESULTS[topology]):
            self.create(topic)
        self._filled = {}
        self._number += 1
        group = f"latency-{topology}-{self._number}"
        self.say(f"latency: {topology}, {rate:,} records a second")
        with tempfile.TemporaryDirectory(prefix="bench-streams-", dir=MEMORY) as folder:
            arguments = [topology, self.broker.bootstrap, group, f"{folder}/state", AT_LEAST]
            application = Application(our_command(), arguments, Path(folder) / "log")
            try:
                application.wait_until_running()
                found = streams_latency.measure(
                    self.broker.bootstrap, "clicks", RESULTS[topology], rate, seconds
                )
            except RuntimeError as error:
                application.close()
                raise RuntimeError(f"{error}: {application.log.read_text().strip()[-2000:]}") from error
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
                arguments = [name, self.broker.bootstrap, f"app-{name}", f"{folder}/state", AT_LEAST]
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
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
        pip = [str(python), "-m", "pip", "-q", "install", *PEERS[side]]
        subprocess.run(pip, check=True, timeout=600, env=env)
        (folder / "ready").touch()
    return [str(python), str(Path(__file__).parent / f"streams_{side}.py")]


def say(text: str) -> None:
    print(f"{time.strftime('%X')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(row.name for row in ROWS)}, latency, idle")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--limit", type=float, default=40.0, help="seconds that a side may take")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of latency and idle queries")
    parser.add_argument("--continue", action="store_true", dest="continues", help="keep rows measured before")
    parser.add_argument("--no-page", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.records = min(args.records, 1_000_000)
    kept: dict[str, Found] = {}
    costs: dict[str, dict[str, float]] = {}
    if args.continues and FOUND.exists():
        kept, costs = pickle.loads(FOUND.read_bytes())

    def keep() -> None:
        if not args.no_page:
            FOUND.parent.mkdir(parents=True, exist_ok=True)
            FOUND.write_bytes(pickle.dumps((kept, costs)))
            PAGE.write_text(page([kept[row.name] for row in ROWS if row.name in kept], costs))

    with Broker(tempfile.mkdtemp(prefix="bench-streams-", dir=MEMORY), in_process=False) as broker:
        bench = Bench(broker, args.records, args.limit, say)
        if not args.rows or "latency" in args.rows:
            for name in LATENCY:
                try:
                    costs[name] = bench.latency(name, args.rate, args.seconds)
                except RuntimeError as error:
                    say(f"{name}: not measured: {error}")
                    continue
                say(f"{name}: {costs[name]}")
        if not args.rows or "idle" in args.rows:
            try:
                costs["idle"] = bench.idle(args.seconds / 2)
                say(f"idle: {costs['idle']}")
            except RuntimeError as error:
                say(f"idle: not measured: {error}")
        keep()
        for row in ROWS:
            if not args.rows or row.name in args.rows:
                kept[row.name] = bench.row(row)
                print(*cells(kept[row.name]), sep=" | ", flush=True)
                keep()


if __name__ == "__main__":
    main()

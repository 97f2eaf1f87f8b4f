"""Applications of the comparison as processes: started, watched until their group has read everything, ended.

In: a command that prints RUNNING and ends when its input is closed. Out: seconds from RUNNING until every
record is processed and committed or the time is over, how much was done by then, and the processor seconds of
the application and of the broker. Does not know: what the application computes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.blocking import run
from barnabas.client.core.topology import TopicPartition
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.fetcher import LATEST
from barnabas.testing import apache

POLL_S = 0.1
START_S = 120.0  # a side that does not say RUNNING by then has failed
COMMIT_MS = 1000
MARKERS_MAX = 10  # ends of transactions behind the last record of an internal topic
HEAP = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
SOURCE = Path(__file__).parent / "java" / "StreamsBench.java"


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one side. `share`: of the records that were processed; below 1, the time was over."""

    seconds: float
    processor_s: float
    broker_s: float
    share: float = 1.0


def java_command(folder: Path) -> list[str]:
    """Compile the Java program; the start of the command that runs it."""
    jars = os.pathsep.join([f"{apache.jars()}/*", f"{apache.streams_jars()}/*"])
    done = subprocess.run(
        ["javac", "-cp", jars, "-d", str(folder), str(SOURCE)], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{SOURCE} cannot be compiled: {done.stderr}")
    return ["java", *HEAP, "-cp", os.pathsep.join([jars, str(folder)]), SOURCE.stem]


def our_command() -> list[str]:
    return [sys.executable, "-m", "bench.streams_ours"]


def processor_seconds(process: psutil.Process) -> float:
    """Of a process, its children, and those that ended."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Application:
    """A running application, in a process of its own."""

    def __init__(self, command: Sequence[str], arguments: Sequence[str], log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        self.log = log
        self._is_running = False
        self.watched = psutil.Process(self._process.pid)

    def wait_until_running(self) -> None:
        said = threading.Event()
        threading.Thread(target=self._listen, args=(said,), daemon=True).start()
        if not said.wait(START_S) or not self._is_running:
            self.close()
            last = self.log.read_text().strip()[-2000:]
            raise RuntimeError(f"the application did not say RUNNING within {START_S:.0f} s: {last}")

    def _listen(self, said: threading.Event) -> None:
        """Read its output to the end, so that it never waits for a reader."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "RUNNING":
                self._is_running = True
                said.set()
        said.set()

    def processor_s(self) -> float:
        return processor_seconds(self.watched)

    def memory_mb(self) -> float:
        """Of the process and its children; what several of them share counts once."""
        some = [self.watched, *self.watched.children(recursive=True)]
        return float(sum(each.memory_full_info().pss for each in some)) / 1e6

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            for child in self.watched.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
            self._process.kill()
            self._process.wait()
        self._log.close()


Progress = Callable[[], float]  # the share of the records that is done


def progress_of_group(
    cluster: WorkerCluster, group: str, sources: Sequence[str], *, is_exactly_once: bool
) -> float:
    """The share of the sources that a group has committed, times that of its repartition topics."""
    committed = run(GroupOffsetAdmin(cluster).committed_offsets(group))
    topics = run(cluster.topics(None))
    internal = {name for name in topics if group in name and "changelog" not in name}
    places = {
        TopicPartition(name, each) for name in {*sources, *internal} for each in topics[name].partitions
    }
    ends = cluster.offsets(dict.fromkeys(places, LATEST))
    ended = {place: min(committed[place].offset, ends[place]) if place in committed else 0 for place in ends}
    if is_exactly_once:
        for place, at in ended.items():
            if at and place.topic in internal and ends[place] - at <= MARKERS_MAX:
                ended[place] = ends[place]
    share = 1.0
    for some in [set(sources), *([internal] if internal else [])]:
        total = sum(ends[place] for place in places if place.topic in some)
        done = sum(ended[place] for place in places if place.topic in some)
        share *= done / total if total else 0.0
    return share


def progress_of_results(cluster: WorkerCluster, topic: str, count: int) -> float:
    places = [TopicPartition(topic, each) for each in run(cluster.topics([topic]))[topic].partitions]
    return sum(cluster.offsets(dict.fromkeys(places, LATEST)).values()) / count


def measure(
    command: Sequence[str], arguments: Sequence[str], progress: Progress, broker_pid: int, limit_s: float
) -> Ran:
    """Run one side until all is done or the time is over. `{state}` of an argument is a folder."""
    broker = psutil.Process(broker_pid)
    with TemporaryDirectory(prefix="bench-streams-", dir="/dev/shm") as folder:
        given = [each.replace("{state}", f"{folder}/state") for each in arguments]
        application = Application(command, given, Path(folder) / "log")
        try:
            application.wait_until_running()
            started = time.perf_counter()
            before = processor_seconds(application.watched), processor_seconds(broker)
            share, seconds = 0.0, 0.0
            while share < 1.0 and seconds < limit_s:
                time.sleep(POLL_S)
                if not application.is_alive:
                    raise RuntimeError(f"the application ended: {application.log.read_text()[-3000:]}")
                share, seconds = progress(), time.perf_counter() - started
            after = processor_seconds(application.watched), processor_seconds(broker)
            if not share:
                raise RuntimeError(f"no record was committed within {seconds:.0f} s")
            return Ran(seconds, after[0] - before[0], after[1] - before[1], min(share, 1.0))
        finally:
            application.close()
            if os.environ.get("BENCH_LOG"):
                print((Path(folder) / "log").read_text()[-4000:], file=sys.stderr)

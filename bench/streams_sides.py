"""Applications of the comparison as processes: started, watched until their group has read everything, ended.

In: a command that prints RUNNING and ends when its input is closed. Out: seconds from RUNNING until every
record is processed and committed, and the processor seconds of the application and of the broker. Does not
know: what the application computes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
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
TIMEOUT_S = 1800
COMMIT_MS = 1000
HEAP = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
SOURCE = Path(__file__).parent / "java" / "StreamsBench.java"


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one side."""

    seconds: float
    processor_s: float
    broker_s: float


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
        self.watched = psutil.Process(self._process.pid)

    def wait_until_running(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "RUNNING":
                return
        raise RuntimeError(f"the application ended: {self.log.read_text()[-2000:]}")

    def processor_s(self) -> float:
        return processor_seconds(self.watched)

    def memory_mb(self) -> float:
        """Of the process and its children, what they share counted for each."""
        some = [self.watched, *self.watched.children(recursive=True)]
        return float(sum(each.memory_info().rss for each in some)) / 1e6

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def has_read_everything(cluster: WorkerCluster, group: str, sources: Sequence[str]) -> bool:
    committed = run(GroupOffsetAdmin(cluster).committed_offsets(group))
    topics = run(cluster.topics(None))
    internal = [name for name in topics if group in name and "changelog" not in name]
    wanted = [*sources, *internal]
    places = [TopicPartition(name, each) for name in wanted for each in topics[name].partitions]
    ends = cluster.offsets(dict.fromkeys(places, LATEST))
    return all(
        end == 0 or (place in committed and committed[place].offset >= end) for place, end in ends.items()
    )


def has_results(cluster: WorkerCluster, topic: str, count: int) -> bool:
    places = [TopicPartition(topic, each) for each in run(cluster.topics([topic]))[topic].partitions]
    return sum(cluster.offsets(dict.fromkeys(places, LATEST)).values()) >= count


def measure(
    command: Sequence[str],
    name: str,
    cluster: WorkerCluster,
    bootstrap: str,
    broker_pid: int,
    group: str,
    sources: Sequence[str],
    guarantee: str,
    *,
    results: tuple[str, int] | None = None,
) -> Ran:
    """Run one side until its group has committed the ends of all sources, or until a topic has so many
    results."""
    broker = psutil.Process(broker_pid)
    with TemporaryDirectory(prefix="bench-streams-", dir="/dev/shm") as folder:
        arguments = [name, bootstrap, group, f"{folder}/state", guarantee, str(COMMIT_MS)]
        if results is not None:  # a program of a single topology
            arguments = [bootstrap, group, f"{folder}/state"]
        application = Application(command, arguments, Path(folder) / "log")
        try:
            application.wait_until_running()
            started = time.perf_counter()
            before = processor_seconds(application.watched), processor_seconds(broker)
            while not (
                has_results(cluster, *results) if results else has_read_everything(cluster, group, sources)
            ):
                if not application.is_alive or time.perf_counter() - started > TIMEOUT_S:
                    raise RuntimeError(f"{group} did not finish: {application.log.read_text()[-3000:]}")
                time.sleep(POLL_S)
            seconds = time.perf_counter() - started
            after = processor_seconds(application.watched), processor_seconds(broker)
            return Ran(seconds, after[0] - before[0], after[1] - before[1])
        finally:
            application.close()
            if os.environ.get("BENCH_LOG"):
                print((Path(folder) / "log").read_text()[-4000:], file=sys.stderr)

"""`python -m bench.stalls`: measures how long one producer waits during a large request of another client.

In: rows to run. Out, for each row: the longest wait of a producer that writes one record at a time (its
floor: 20 ms), the median and longest wait of the same producer without a disturbance, and the longest turn of
the broker's loop: without the time that it waited for a processor, and in processor time. On a busy machine
only the last two show the broker's own work. A row is one function with `@row`; its work inside `with
stage.watched()` disturbs the producer. Rows run in order on one broker, and each can run alone. `make bench`
runs them, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from bench import (
    fetch_stalls,
    frames,
    group_frames,
    group_stalls,
    loop_watch,
    machine,
    probe,
    validation_stalls,
)
from bench.brokers import (
    TOPIC_CONFIGS,
    USABLE_TIMEOUT_S,
    Barnabas,
    Contender,
    ask,
    client_settings,
    create_topics,
    delete_topics,
    wait_until_usable,
)
from bench.generator import LoadError, memory_folder
from bench.loads import Scale, Trial
from bench.probe import Wait
from bench.rows import ROWS

PROBE_TOPIC = "probe"
PARTITIONS, PER_TOPIC = 10_000, 100
GROUPS = 50_000
TOPICS_A_REQUEST = 50  # a request may create at most 10,000 records of metadata
IDLE_S, SETTLE_S = 2.0, 1.0  # measured before the disturbance, and after it, because work may continue
PROBE_START_S = 10.0
RESPONSE_TIMEOUT_S = 120.0
METADATA_REQUESTS = 5
GROUP = "stall"
SEGMENTS_TOPIC, SEGMENTS = "segments", 500
MAX_TIMESTAMP, MAX_TIMESTAMP_SINCE = -3, 7
TIME_REQUESTS = 200
COLD_TOPIC, COLD_PARTITIONS, COLD_RECORDS = "cold", 64, 8_000  # records of 100 bytes
DESCRIBE_LOG_DIRS_VERSION = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """The probe's results for one row, in milliseconds; turns of the loop only if it is watched."""

    longest_ms: float
    median_ms: float
    idle_longest_ms: float
    took_ms: float
    turn_ms: float = 0.0
    turn_own_ms: float = 0.0
    turn_cpu_ms: float = 0.0


class Stage:
    """A running broker, the topics that rows share, and the probe."""

    def __init__(self, broker: Contender, partitions: int, turns: Path | None = None) -> None:
        self.broker = broker
        self.topics = {
            f"many-{number:03}": min(PER_TOPIC, partitions)
            for number in range(max(1, partitions // PER_TOPIC))
        }
        self._turns = turns
        self._is_created = False
        self.groups = GROUPS  # the number of groups in rows about groups
        self.idle_s = IDLE_S
        self.settle_s = SETTLE_S
        self.measured: Measured | None = None
        create_topics(broker, {PROBE_TOPIC: 1})

    # -- what rows do --------------------------------------------------------------------------------

    def create(self) -> None:
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient(client_settings(self.broker))
        new = [NewTopic(name, count, 1, config=TOPIC_CONFIGS) for name, count in self.topics.items()]
        for at in range(0, len(new), TOPICS_A_REQUEST):
            portion = new[at : at + TOPICS_A_REQUEST]
            for future in admin.create_topics(portion, request_timeout=USABLE_TIMEOUT_S).values():
                future.result()
        self._is_created = True

    def need_topics(self) -> None:
        """Create the topics unless an earlier row has."""
        if not self._is_created:
            self.create()
        wait_until_usable(self.broker, self.topics)

    def make_segments(self) -> None:
        """Create a topic with one partition of many small segments."""
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        config = {**TOPIC_CONFIGS, "segment.ms": "1", "retention.ms": "-1"}
        admin = AdminClient(client_settings(self.broker))
        new = [NewTopic(SEGMENTS_TOPIC, 1, 1, config=config)]
        for future in admin.create_topics(new, request_timeout=USABLE_TIMEOUT_S).values():
            future.result()
        wait_until_usable(self.broker, {SEGMENTS_TOPIC: 1})
        producer = Producer({**client_settings(self.broker), "linger.ms": 0})
        for number in range(min(SEGMENTS, sum(self.topics.values()))):
            producer.produce(SEGMENTS_TOPIC, b"record", timestamp=1_700_000_000_000 + 10 * number)
            producer.flush()

    def delete(self) -> None:
        delete_topics(self.broker, *self.topics)
        self._is_created = False

    def ask(self, frame: bytes) -> bytes:
        return ask(self.broker.port, frame, RESPONSE_TIMEOUT_S)

    # -- the probe -----------------------------------------------------------------------------------

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Run the probe alone for a while, then during the work of the row, then a little longer."""
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
            out = Path(folder) / "waits"
            command = [sys.executable, "-m", "bench.probe", str(self.broker.port), PROBE_TOPIC, str(out)]
            process = subprocess.Popen(command, cwd=Path(__file__).resolve().parent.parent)
            try:
                deadline = time.monotonic() + PROBE_START_S
                while not (out.exists() and out.stat().st_size) and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(self.idle_s)
                began = time.monotonic()
                yield
                ended = time.monotonic()
                time.sleep(self.settle_s)
            finally:
                process.terminate()
                process.wait()
            if process.returncode:
                raise LoadError(f"the probe ended with status {process.returncode}")
            self.measured = self._judge(probe.read_waits(out), began, ended)

    def _judge(self, waits: Sequence[Wait], began: float, ended: float) -> Measured:
        idle = [each.seconds for each in waits if each.at_s < began - each.seconds]
        beside = [each.seconds for each in waits if each.at_s + each.seconds >= began]
        return self.judged(idle, beside, began, ended)

    def judged(self, idle: list[float], beside: list[float], began: float, ended: float) -> Measured:
        """Compute the results from the waits of a producer, in seconds, without and with the disturbance."""
        turns = loop_watch.read_turns(self._turns) if self._turns is not None else []
        turns = [turn for turn in turns if began <= turn.at_s <= ended + self.settle_s]
        return Measured(
            max(beside) * 1000,
            statistics.median(idle) * 1000,
            max(idle) * 1000,
            (ended - began) * 1000,
            max((turn.wall_ms for turn in turns), default=0.0),
            max((turn.own_ms for turn in turns), default=0.0),
            max((turn.cpu_ms for turn in turns), default=0.0),
        )


Disturb = Callable[[Stage], None]
DISTURBANCES: dict[str, Disturb] = {}


def row(name: str) -> Callable[[Disturb], Disturb]:
    """Register a function as a row: the waits during `with stage.watched()` are compared with the floor in
    `bench.rows`."""

    def add(disturb: Disturb) -> Disturb:
        assert name in ROWS, f"{name} has no floor in bench/rows.py"
        DISTURBANCES[name] = disturb
        return disturb

    return add


@row("stall-create")
def create(stage: Stage) -> None:
    with stage.watched():
        stage.create()


@row("stall-first-records")
def first_records(stage: Stage) -> None:
    """One request with a record for each partition, like that of a Java producer with many partitions."""
    stage.need_topics()
    frame = produce_to_all(stage.topics)
    with stage.watched():
        response = stage.ask(frame)
    check_produced(response, stage.topics)


@row("stall-metadata")
def all_metadata(stage: Stage) -> None:
    stage.need_topics()
    with stage.watched():
        for _ in range(METADATA_REQUESTS):
            stage.ask(metadata_of_all())


@row("stall-offsets")
def all_offsets(stage: Stage) -> None:
    stage.need_topics()
    with stage.watched():
        stage.ask(frames.list_offsets(stage.topics))


@row("stall-sizes")
def all_sizes(stage: Stage) -> None:
    stage.need_topics()
    body = DescribeLogDirsRequest(topics=None).encode(DESCRIBE_LOG_DIRS_VERSION)
    with stage.watched():
        for _ in range(METADATA_REQUESTS):
            stage.ask(frames.request(35, DESCRIBE_LOG_DIRS_VERSION, body, flexible=False))


@row("stall-times")
def largest_timestamps(stage: Stage) -> None:
    """Look up the largest timestamp in a partition of many segments."""
    stage.make_segments()
    topic = ListOffsetsRequest.ListOffsetsTopic
    asked = topic.ListOffsetsPartition(partition_index=0, timestamp=MAX_TIMESTAMP)
    body = ListOffsetsRequest(replica_id=-1, topics=[topic(name=SEGMENTS_TOPIC, partitions=[asked])])
    frame = frames.request(2, MAX_TIMESTAMP_SINCE, body.encode(MAX_TIMESTAMP_SINCE), flexible=True)
    with stage.watched():
        for _ in range(TIME_REQUESTS):
            stage.ask(frame)


@row("stall-cold")
def cold_logs(stage: Stage) -> None:
    """Read and write logs that have left the page cache."""
    partitions = min(COLD_PARTITIONS, sum(stage.topics.values()))
    create_topics(stage.broker, {COLD_TOPIC: partitions})
    large, small = frames.batch_of(COLD_RECORDS), frames.batch_of(1)
    for partition in range(partitions):
        stage.ask(frames.produce(COLD_TOPIC, large, 1, partition).frames)
    for path in stage.broker.data.glob(f"{COLD_TOPIC}-*/*"):
        drop_from_page_cache(path)
    with stage.watched():
        for partition in range(partitions):
            stage.ask(frames.produce(COLD_TOPIC, small, 1, partition).frames)
            response = stage.ask(frames.fetch(COLD_TOPIC, 0, large.size, partition=partition))
            if len(response) < large.size:
                raise LoadError(f"{len(response)} bytes of {COLD_TOPIC}-{partition} were fetched")


def drop_from_page_cache(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # dirty pages would stay in the cache
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


@row("stall-commit")
def commit(stage: Stage) -> None:
    """Commit an offset for each partition in one request of one group."""
    stage.need_topics()
    stage.ask(group_frames.find_coordinator(GROUP))
    frame = commit_all(GROUP, stage.topics)
    deadline = time.monotonic() + RESPONSE_TIMEOUT_S
    while commit_error(stage.ask(group_frames.commit(GROUP, PROBE_TOPIC, 0)), PROBE_TOPIC):
        if time.monotonic() > deadline:
            raise LoadError("the group has no coordinator")
        time.sleep(0.05)
    with stage.watched():
        response = stage.ask(frame)
    if error := commit_error(response, next(iter(stage.topics))):
        raise LoadError(f"the offsets were refused with error {error}")


fetch_stalls.register(row)


@row("stall-delete")
def delete(stage: Stage) -> None:
    stage.need_topics()
    with stage.watched():
        stage.delete()


# -- frames ------------------------------------------------------------------------------------------


def produce_to_all(topics: dict[str, int]) -> bytes:
    batch = frames.batch_of(1).content
    body = bytearray(struct.pack(">hhii", -1, 1, 30_000, len(topics)))
    for topic, partitions in topics.items():
        body += group_frames.text(topic) + struct.pack(">i", partitions)
        for partition in range(partitions):
            body += struct.pack(">ii", partition, len(batch)) + batch
    return frames.request(0, 7, bytes(body), flexible=False)


def check_produced(response: bytes, topics: dict[str, int]) -> None:
    position = frames.CORRELATION_BYTES + 4
    for topic, partitions in topics.items():
        position += 2 + len(topic) + 4
        for _ in range(partitions):
            index, error = struct.unpack_from(">ih", response, position)
            if error:
                raise LoadError(f"a record for {topic}-{index} was refused with error {error}")
            position += 4 + 2 + 8 + 8 + 8


def metadata_of_all() -> bytes:
    return frames.request(3, 8, struct.pack(">ibbb", -1, 0, 0, 0), flexible=False)


def commit_all(group: str, topics: dict[str, int]) -> bytes:
    text, array = group_frames.text, group_frames.array
    places = [
        text(topic) + array([struct.pack(">iqi", index, 1, -1) + text("") for index in range(partitions)])
        for topic, partitions in topics.items()
    ]
    body = text(group) + struct.pack(">i", -1) + text("") + group_frames.NO_TEXT + array(places)
    return frames.request(8, 7, body, flexible=False)


def commit_error(response: bytes, first_topic: str) -> int:
    """The error code of the first partition."""
    at = group_frames.commit_error_at(first_topic) - frames.SIZE_BYTES
    return int(struct.unpack_from(">h", response, at)[0])


# -- running -----------------------------------------------------------------------------------------


def run(stage: Stage, names: Sequence[str]) -> Iterator[tuple[str, Measured]]:
    for name in names:
        stage.measured = None
        DISTURBANCES[name](stage)
        assert stage.measured is not None, f"{name} watched nothing"
        yield name, stage.measured


def stalls(broker: Contender, scale: Scale) -> dict[str, float]:
    """Run all rows on a broker that is started for them."""
    broker.start()
    try:
        stage = Stage(broker, min(PARTITIONS, scale.partitions * 5 // 2))
        stage.groups = min(GROUPS, scale.partitions * 25 // 2)
        stage.idle_s, stage.settle_s = min(IDLE_S, scale.seconds), min(SETTLE_S, scale.seconds)
        return {name: measured.longest_ms for name, measured in run(stage, list(DISTURBANCES))}
    finally:
        broker.stop()


group_stalls.register(row)
validation_stalls.register(row)
TRIALS = (Trial(tuple(DISTURBANCES), stalls, warm_up=False, is_once=True, peer_may_fail=True),)
HEADS = ("row", "longest wait", "idle: median", "longest", "longest turn", "its own", "processor", "took", "")


def cells(name: str, measured: Measured) -> tuple[str, ...]:
    values = (
        measured.longest_ms,
        measured.median_ms,
        measured.idle_longest_ms,
        measured.turn_ms,
        measured.turn_own_ms,
        measured.turn_cpu_ms,
        measured.took_ms,
    )
    verdict = "pass" if ROWS[name].holds(measured.longest_ms) else "FAIL"
    return (ROWS[name].title, *(f"{value:,.1f} ms" for value in values), verdict)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stalls", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"only these: {', '.join(DISTURBANCES)}")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--stacks", type=Path, help="write where long turns of the loop are into this file")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rows if name not in DISTURBANCES]
    if unknown:
        print(f"no such row: {', '.join(unknown)}; there are {', '.join(DISTURBANCES)}", file=sys.stderr)
        return 2
    console = Console() if sys.stdout.isatty() else Console(width=150)
    table, fails = Table(*HEADS), 0
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        turns = (options.stacks or Path(folder) / "turns").resolve()
        watch = str(Path(__file__).with_name("loop_watch.py"))
        prefix = [sys.executable, watch, str(turns), *(["--stacks"] if options.stacks else [])]
        broker = Barnabas(prefix=prefix)
        try:
            broker.start()
            for name, measured in run(
                Stage(broker, options.partitions, turns), options.rows or list(DISTURBANCES)
            ):
                shown = cells(name, measured)
                table.add_row(*shown)
                fails += shown[-1] == "FAIL"
        except Exception:
            console.print(broker.printed())
            raise
        finally:
            broker.close()
        files_us = machine.partition_files_us(Path(tempfile.gettempdir()))
    console.print(table)
    console.print(f"the disk alone takes {files_us:,.0f} µs for the files of one new partition")
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

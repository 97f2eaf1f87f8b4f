"""`python -m bench.cluster_stalls`: 100,000 partitions in a cluster of three, and producers beside them.

In: the number of partitions, how many of them have three replicas, the number of groups. Out, for each phase
(at rest, topics created, all metadata requested, groups commit and are listed, a node stopped and started
again, a node killed and started again, topics deleted): its duration, the longest wait of a producer that
writes one record at a time to each node, and the longest turn of a node's loop: by the clock, without the
time that the node waited for a processor, and in processor time. Each phase has a verdict; the exit status is
1 if a loop worked longer than 20 ms in one turn. A node that is down or starting has no producer. The first
phase is the control: nothing disturbs the producers. The nodes' folders are in memory if possible, because a
file system may take milliseconds for the files of a partition (ext4 does after many files were deleted). Does
not know: Apache Kafka, which would take too long.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from bench import frames, generator, group_frames, loop_watch, probe
from bench.brokers import ask, memory_bytes
from bench.cluster_groups import GROUPS, ClusterGroups
from bench.rows import STALL_MS_MAX

NODES = 3
PARTITIONS, REPLICATED, PER_TOPIC = 100_000, 10_000, 1_000
PATIENCE_S = 400.0
RESPONSE_TIMEOUT_S = 120.0
PROBE_START_S = 10.0
REST_S = 5.0
SETTLE_S = 2.0  # measured after a phase, because work may continue
LOOK_S = 0.3
METADATA_VERSION = 8
TAIL, BATCHES = "tail", 50_000
CUT_BEFORE_S = 0.005  # a truncation begins before its line in the log
OVERRIDES = {
    "log.segment.delete.delay.ms": 1_000,  # removing files is a part of deleting
    "log.cleaner.enable": "false",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """The results of one phase; waits and turns are in milliseconds, the longest of all nodes."""

    name: str
    took_s: float
    wait_ms: float
    median_ms: float
    turn_ms: float
    own_ms: float
    cpu_ms: float
    over: int  # turns in which the node's own work took longer than the limit
    memory_mb: float

    @property
    def verdict(self) -> str:
        """FAIL: a node's loop worked too long in one turn. `late`: the producer waited longer than the limit,
        though no loop worked that long: for the disk, for a processor that others used, or for a thread."""
        if self.cpu_ms > STALL_MS_MAX:
            return FAIL
        return LATE if self.wait_ms > STALL_MS_MAX else PASS

    def cells(self) -> tuple[str, ...]:
        return (
            self.name,
            f"{self.took_s:,.1f} s",
            f"{self.wait_ms:,.1f} ms",
            f"{self.median_ms:,.2f} ms",
            f"{self.turn_ms:,.1f} ms",
            f"{self.own_ms:,.1f} ms",
            f"{self.cpu_ms:,.1f} ms",
            str(self.over),
            f"{self.memory_mb:,.0f} MB",
            self.verdict,
        )


PASS, LATE, FAIL = "pass", "late", "FAIL"
HEADS = (
    "phase", "took", "longest wait", "median", "longest turn", "its own", "processor", "> 20", "memory", "",
)  # fmt: skip


class Watched:
    """Three nodes, a producer for each, and the results of all phases."""

    def __init__(self, folder: Path, partitions: int, replicated: int, *, stacks: Path | None = None) -> None:
        self.cluster = Cluster(combined=NODES, overrides=OVERRIDES, parent=folder)
        self._folder = folder
        self._stacks = stacks
        self._lives = 0
        self.settle_s = SETTLE_S
        self.topics = [f"many-{number:03}" for number in range(max(1, partitions // PER_TOPIC))]
        self.per_topic = min(PER_TOPIC, partitions)
        self.replicated = set(self.topics[: replicated // self.per_topic])
        self.phases: list[Phase] = []
        for node in self.cluster.nodes.values():
            self._watch(node)

    def start(self) -> None:
        self.cluster.start()
        for node_id in self.cluster.nodes:
            topic = NewTopic(self.probed(node_id), assignments=[[node_id]])
            self.cluster.ask(lambda admin, topic=topic: admin.create_topic(topic))
        wait_until(self._probes_led, PATIENCE_S, "the producers' topics are led")

    def probed(self, node_id: int) -> str:
        return f"probe-{node_id}"

    def _probes_led(self) -> bool:
        return all(
            not frames.list_offsets_errors(self.ask(node_id, frames.list_offsets({self.probed(node_id): 1})))
            for node_id in self.cluster.nodes
        )

    def port(self, node_id: int) -> int:
        return int(self.cluster[node_id].address.rpartition(":")[2])

    def ask(self, node_id: int, frame: bytes) -> bytes:
        return ask(self.port(node_id), frame, RESPONSE_TIMEOUT_S)

    # -- measuring -----------------------------------------------------------------------------------

    def _watch(self, node: ClusterNode) -> None:
        """Record the turns of the node's loop from its next start on."""
        self._lives += 1
        parent = self._stacks or self._folder
        turns = parent / f"turns-{node.id}-{self._lives}"
        watch = str(Path(__file__).with_name("loop_watch.py"))
        node.python = [sys.executable, watch, str(turns), *(["--stacks"] if self._stacks else [])]

    def _turns(self, node_id: int) -> list[loop_watch.Turn]:
        found = sorted((self._stacks or self._folder).glob(f"turns-{node_id}-*"))
        return [turn for path in found for turn in loop_watch.read_turns(path)]

    @contextmanager
    def phase(
        self, name: str, *, without: int | None = None, since: Callable[[], float] | None = None
    ) -> Iterator[None]:
        """Run producers on all nodes but `without` during a phase and a little longer.

        Turns of the loops count from `since()` on, which is called at the end.
        """
        node_ids = [each for each in self.cluster.nodes if each != without]
        with ExitStack() as probes:
            waits = {node_id: probes.enter_context(self._probe(node_id)) for node_id in node_ids}
            began = time.monotonic()
            yield
            ended = time.monotonic()
            time.sleep(self.settle_s)
        counted_from = since() if since is not None else began
        seconds = [each.seconds for path in waits.values() for each in probe.read_waits(path)]
        turns = [
            turn
            for node_id in node_ids
            for turn in self._turns(node_id)
            if counted_from <= turn.at_s <= ended + self.settle_s
        ]
        self.phases.append(
            Phase(
                name,
                ended - began,
                max(seconds) * 1000,
                sorted(seconds)[len(seconds) // 2] * 1000,
                max((turn.wall_ms for turn in turns), default=0.0),
                max((turn.own_ms for turn in turns), default=0.0),
                max((turn.cpu_ms for turn in turns), default=0.0),
                sum(turn.own_ms > STALL_MS_MAX for turn in turns),
                max(memory_bytes(node.pid) for node in self.cluster.nodes.values() if node.is_running) / 1e6,
            )
        )

    @contextmanager
    def _probe(self, node_id: int) -> Iterator[Path]:
        self._lives += 1
        out = self._folder / f"waits-{node_id}-{self._lives}"
        command = [
            sys.executable,
            "-m",
            "bench.probe",
            str(self.port(node_id)),
            self.probed(node_id),
            str(out),
        ]
        process = subprocess.Popen(command, cwd=Path(__file__).resolve().parent.parent)
        try:
            wait_until(lambda: out.exists() and out.stat().st_size, PROBE_START_S, "the producer writes")
            yield out
        finally:
            process.terminate()
            process.wait()
        if process.returncode:
            raise generator.LoadError(f"the producer of node {node_id} ended with {process.returncode}")

    # -- what happens --------------------------------------------------------------------------------

    def create(self) -> None:
        for topic in self.topics:
            new = NewTopic(topic, self.per_topic, NODES if topic in self.replicated else 1)
            self._change(partial(Admin.create_topic, topic=new), ErrorCode.TOPIC_ALREADY_EXISTS)
        for topic in self.topics:
            wait_until(partial(self._is_led, topic), PATIENCE_S, f"all partitions of {topic} are led")

    def _change(self, change: Callable[[Admin], Awaitable[object]], repeated: ErrorCode) -> None:
        """Change a topic. `repeated`: the error of a client that asks again after a change of the
        controller, though its first request was carried out."""
        try:
            self.cluster.ask(change)
        except KafkaError as error:
            if error.code != repeated:
                raise

    def _is_led(self, topic: str) -> bool:
        """Whether the leader of every partition responds to ListOffsets."""
        question = frames.list_offsets({topic: self.per_topic})
        led = 0
        for node_id, node in self.cluster.nodes.items():
            if node.is_running:
                led += self.per_topic - len(frames.list_offsets_errors(self.ask(node_id, question)))
        return led == self.per_topic or pause()

    def metadata(self) -> None:
        """Request all metadata from every node."""
        frame = frames.request(3, METADATA_VERSION, struct.pack(">ibbb", -1, 0, 0, 0), flexible=False)
        for node_id in self.cluster.nodes:
            self.ask(node_id, frame)

    def until(self, holds: Callable[[Partition], bool], at: int, what: str) -> None:
        """Wait until the metadata of one node shows this for all partitions with several replicas."""
        for topic in self.topics:
            if topic in self.replicated:
                wait_until(
                    partial(self._is_so, topic, holds, at), PATIENCE_S, f"partitions of {topic} are {what}"
                )

    def _is_so(
        self, topic: str, holds: Callable[[Partition], bool], at: int, partitions: int | None = None
    ) -> bool:
        body = group_frames.array([group_frames.text(topic)]) + b"\0\0\0"
        response = self.ask(at, frames.request(3, METADATA_VERSION, body, flexible=False))
        [found] = MetadataResponse.decode(response[frames.CORRELATION_BYTES :], METADATA_VERSION).topics
        count = partitions or self.per_topic
        return (len(found.partitions) == count and all(map(holds, found.partitions))) or pause()

    def until_one(self, topic: str, holds: Callable[[Partition], bool], at: int, what: str) -> None:
        """Wait for the same of a topic with one partition."""
        wait_until(partial(self._is_so, topic, holds, at, 1), PATIENCE_S, f"{topic} is {what}")

    def start_again(
        self,
        node: ClusterNode,
        at: int,
        wait: Callable[[], None] | None = None,
        since: Callable[[], float] | None = None,
    ) -> None:
        """Start a node and wait until it is in sync everywhere; its producer starts when it responds."""
        self._watch(node)
        began = time.monotonic()
        node.start()
        served = time.monotonic()
        wait_until(self._probes_led, PATIENCE_S, "the producers' topics are led")
        with self.phase(
            f"the node catches up, {served - began:.1f} s after its start", since=since or (lambda: served)
        ):
            if wait is not None:
                wait()
            else:
                self.until(lambda found: len(found.isr_nodes) == NODES, at, "in sync")

    def delete(self) -> None:
        for topic in self.topics:
            self._change(partial(Admin.delete_topics, names=[topic]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for node in self.cluster.nodes.values():
            wait_until(partial(self._is_empty, node.folder), PATIENCE_S, f"node {node.id} has no folders")

    def _is_empty(self, folder: Path) -> bool:
        return not any(path.name.startswith("many-") for path in folder.iterdir()) or pause()


Partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition


def pause() -> bool:
    time.sleep(LOOK_S)
    return False


def measure(
    watched: Watched,
    said: Callable[[str], None],
    *,
    kill: bool,
    groups: int = GROUPS,
    rest_s: float = REST_S,
) -> None:
    """All phases, in order. The groups are there when nodes stop and start: others load them."""
    cluster, many = watched.cluster, ClusterGroups(watched, groups)
    said("starting")
    watched.start()
    with watched.phase("at rest, nothing there"):
        time.sleep(rest_s)
    said("creating")
    with watched.phase("create"):
        watched.create()
    with watched.phase("at rest"):
        time.sleep(rest_s)
    said("metadata")
    with watched.phase("metadata of all, of each node"):
        watched.metadata()
    active = active_controller(cluster)
    victim, at = [node for node_id, node in sorted(cluster.nodes.items()) if node_id != active][-1], active
    said(f"{groups} groups")
    many.need_coordinators(at)
    with watched.phase(f"{groups:,} groups commit"):
        many.commit(at, 1)
    with watched.phase("they are listed"):
        many.list_all()
    said(f"stop of node {victim.id}")
    with watched.phase("stop of a node", without=victim.id):
        victim.stop()
        watched.until(lambda found: found.leader_id not in (victim.id, -1), at, "led by others")
        many.until_moved(at, victim.id)
    said("its start")
    watched.start_again(victim, at)
    if kill:
        said(f"kill -9 of node {victim.id}")
        with watched.phase("kill -9 of a node", without=victim.id):
            victim.kill()
            watched.until(lambda found: victim.id not in found.isr_nodes, at, "without it")
            many.until_moved(at, victim.id)
        said("its start")
        watched.start_again(victim, at)
    said("deleting")
    with watched.phase("delete"):
        watched.delete()


def truncate(watched: Watched, said: Callable[[str], None], batches: int = BATCHES) -> None:
    """A former leader comes back as a follower with many batches that the others do not have, after many that
    they have. Each batch has another producer id. It truncates its log and rebuilds its producer state."""
    watched.start()
    with watched.phase("at rest, nothing there"):
        time.sleep(REST_S)
    victim, *others = sorted(watched.cluster.nodes)
    at, node = others[0], watched.cluster[victim]
    new = NewTopic(TAIL, assignments=[[victim, *others]])
    watched.cluster.ask(lambda admin: admin.create_topic(new))
    in_sync = partial(watched.until_one, TAIL, lambda found: len(found.isr_nodes) == NODES, at, "in sync")
    in_sync()
    said(f"{batches} batches for all")
    write_tail(watched.port(victim), 0, batches)
    wait_until(partial(has_end, watched, victim, batches), PATIENCE_S, "followers have them")
    for each in others:
        watched.cluster[each].pause()
    said(f"{batches} batches for the leader alone")
    write_tail(watched.port(victim), batches, batches)
    node.kill()
    for each in others:
        watched.cluster[each].resume()
    watched.until_one(TAIL, lambda found: found.leader_id in others, at, "led by another")
    said("start of the node")
    watched.start_again(node, at, in_sync, since=partial(cut_at_s, node))


def cut_at_s(node: ClusterNode) -> float:
    """The monotonic time of the truncation, from the node's log; it may be before the node responds."""
    line = next((line for line in node.lines if "diverges from its leader" in line), None)
    if line is None:
        raise generator.LoadError(f"node {node.id} did not cut its log")
    text, _, milliseconds = line.strip("[").partition("]")[0].partition(",")
    at_s = time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S")) + int(milliseconds) / 1000
    return time.monotonic() - (time.time() - at_s) - CUT_BEFORE_S


def write_tail(port: int, first: int, count: int) -> None:
    batch = frames.batch_of(1)
    requests = [
        frames.produce_frame(TAIL, [(0, content)])
        for producer in range(first, first + count)
        for content in frames.numbered(batch, 1, producer_id=producer)
    ]
    plan = generator.Plan(1, 64, requests=count, seconds=PATIENCE_S, error_at=frames.error_at(TAIL))
    generator.run(port, b"".join(requests), plan)


def has_end(watched: Watched, node_id: int, end: int) -> bool:
    """The high watermark of the tail's partition, from its leader."""
    response = watched.ask(node_id, frames.list_offsets({TAIL: 1}))
    found: int = frames.LIST_OFFSETS_PARTITION.unpack_from(
        response, frames.CORRELATION_BYTES + 4 + 4 + 2 + len(TAIL) + 4
    )[3]
    return found >= end or pause()


def active_controller(cluster: Cluster) -> int:
    found: int = cluster.ask(lambda admin: admin.describe_quorum()).leader_id
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_stalls", description=__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--replicated", type=int, default=REPLICATED, help="so many have three replicas")
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--kill", action="store_true", help="kill a node, too")
    parser.add_argument("--truncate", action="store_true", help="only a leader that comes back and is cut")
    parser.add_argument("--folder", type=Path, help="where the nodes' folders are; in memory")
    parser.add_argument("--stacks", type=Path, help="write the stacks of long turns to this folder")
    options = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    work = truncate if options.truncate else partial(measure, kill=options.kill, groups=options.groups)
    phases = run(
        console,
        work,
        options.partitions,
        options.replicated,
        folder=options.folder,
        stacks=options.stacks,
    )
    return 1 if any(phase.verdict == FAIL for phase in phases) else 0


def run(
    console: Console,
    work: Callable[[Watched, Callable[[str], None]], None],
    partitions: int = PARTITIONS,
    replicated: int = REPLICATED,
    *,
    folder: Path | None = None,
    stacks: Path | None = None,
) -> list[Phase]:
    """Run phases with a cluster that is started for them, print their table, and return them."""
    began = time.monotonic()
    if stacks is not None:
        stacks.mkdir(parents=True, exist_ok=True)

    def said(what: str) -> None:
        console.print(f"{time.monotonic() - began:.0f} s: {what}")

    with tempfile.TemporaryDirectory(dir=folder or generator.memory_folder()) as name:
        watched = Watched(Path(name), partitions, replicated, stacks=stacks)
        try:
            work(watched, said)
        except BaseException:
            for node in watched.cluster.nodes.values():
                console.print(f"node {node.id}:", *list(node.lines)[-10:], sep="\n", markup=False)
            raise
        finally:
            watched.cluster.__exit__(None, None, None)
            table = Table(*HEADS)
            for phase in watched.phases:
                table.add_row(*phase.cells())
            console.print(table)
    return watched.phases


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

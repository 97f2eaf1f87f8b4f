"""`python -m bench.cluster`: compares three nodes of Barnabas with three of Apache Kafka on this machine.

In: the number of rounds. Out: a table, and `docs/benchmarks-cluster.md`. Every node is broker and controller.
Topics have three replicas; writes wait for all in-sync replicas. Both clusters have default settings, also
for sessions. The trial `many-100k` runs on Barnabas alone (`bench.cluster_stalls`); it writes its section of
the page also when it runs by itself. The exit status is 1 if a row does not hold. `python -m bench` compares
single nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Protocol

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster as Client
from barnabas.client.core.address import parse_bootstrap
from barnabas.testing import apache
from barnabas.testing.apache_cluster import ApacheCluster
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until
from bench import cluster_page, cluster_stalls, frames, generator, many_partitions, relay
from bench.generator import Plan
from bench.rows import STALL_MS_MAX, Better, Row

HEAP = "1G"
NODES = 3
ALL_IN_SYNC = -1
TOGETHER = 5
SMALL, LARGE = 139, 8_000  # records of 100 bytes in a batch of 15 KB, of 880 KB
PATIENCE_S = 120.0
PAUSE_S = 0.002
QUIET = {"log_level": 0}

ROWS = (
    Row("produce-15k", "produce, 15 KB batches", "MB/s", Better.MORE, 1.5),
    Row("produce-880k", "produce, 880 KB batches", "MB/s", Better.MORE, 1.5),
    Row("latency-p50", "one produce, p50", "µs", Better.LESS, 0.75),
    Row("latency-p99", "one produce, p99", "µs", Better.LESS, 0.75),
    Row("together-p50", "one produce for five partitions, p50", "µs", Better.LESS, 0.75),
    Row("idle", "processor at rest, three nodes", "%", Better.LESS, 1.0),
    Row("shutdown", "controlled shutdown of a leader: longest gap", "ms", Better.LESS, 1.0),
    Row("leader", "kill -9 of a leader to the next record", "ms", Better.LESS, 1.0),
    Row("controller", "kill -9 of the controller to the next topic", "ms", Better.LESS, 1.0),
    *many_partitions.ROWS,
    Row(
        "many-100k",
        "many partitions and groups (see below): longest turn of a loop",
        "ms of processor time",
        Better.LESS,
        STALL_MS_MAX,
        of_own=True,
    ),
)


class Node(Protocol):
    @property
    def pid(self) -> int: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


@dataclass(slots=True)
class Contender:
    """Three running nodes, by id."""

    name: str
    nodes: dict[int, Node]
    addresses: dict[int, str]
    values: dict[str, list[float]] = field(default_factory=dict)
    _admin: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        return self._admin

    def create(self, topic: str, *, leader: int | None = None, partitions: int = 1) -> None:
        """Create a topic, whose partitions are all led by one node if it is named. The topic may exist
        already, because clients retry after a change of the controller."""
        if leader is None:
            new = NewTopic(topic, num_partitions=partitions, replication_factor=NODES)
        else:
            replicas = [leader, *(each for each in self.nodes if each != leader)]
            new = NewTopic(topic, num_partitions=partitions, replica_assignment=[replicas] * partitions)
        error = self.admin().create_topics([new], request_timeout=PATIENCE_S)[topic].exception(PATIENCE_S)
        if error is not None and "TOPIC_ALREADY_EXISTS" not in str(error):
            raise error

    def create_in_sync(self, topic: str, *, leader: int | None = None, partitions: int = 1) -> None:
        """Wait until all replicas are in sync, and until the leader accepts a record."""
        self.create(topic, leader=leader, partitions=partitions)
        wait_until(lambda: self._in_sync(topic) == NODES, PATIENCE_S, f"{self.name}: {topic} is in sync")
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "linger.ms": 0, **QUIET})
        producer.produce(topic, b"first")
        assert producer.flush(PATIENCE_S) == 0, f"{self.name}: nothing can be written to {topic}"

    def _in_sync(self, topic: str) -> int:
        found = self.admin().list_topics(topic, timeout=10).topics[topic].partitions
        return min(len(each.isrs) for each in found.values()) if 0 in found and found[0].leader > 0 else 0

    def delete(self, topic: str) -> None:
        self.admin().delete_topics([topic])[topic].result(PATIENCE_S)

    def leader(self, topic: str) -> int:
        leader: int = self.admin().list_topics(topic, timeout=10).topics[topic].partitions[0].leader
        return leader

    def active_controller(self) -> int:
        """The active controller by the quorum: Metadata responses name any broker instead."""

        async def ask() -> int:
            async with Client(parse_bootstrap(self.bootstrap)) as client:
                return (await Admin(client).describe_quorum()).leader_id

        return asyncio.run(ask())

    def port(self, node_id: int) -> int:
        return int(self.addresses[node_id].rpartition(":")[2])


def produce(row: str, records: int, inflight: int) -> Callable[[Contender, float], dict[str, float]]:
    def measure(cluster: Contender, seconds: float) -> dict[str, float]:
        cluster.create_in_sync(row)
        batch = frames.batch_of(records)
        load = frames.produce(row, batch, max(2 * inflight, 4_000_000 // batch.size), acks=ALL_IN_SYNC)
        plan = Plan(1, inflight, seconds=seconds, error_at=load.error_at)
        found = generator.run(cluster.port(cluster.leader(row)), load.frames, plan)
        cluster.delete(row)
        return {row: found.rate * batch.size / 1e6}

    return measure


def latency(cluster: Contender, seconds: float) -> dict[str, float]:
    cluster.create_in_sync("latency")
    load = frames.produce("latency", frames.batch_of(1), 2, acks=ALL_IN_SYNC)
    plan = Plan(1, 1, seconds=seconds, error_at=load.error_at)
    found = generator.run(cluster.port(cluster.leader("latency")), load.frames, plan)
    cluster.delete("latency")
    return {"latency-p50": found.p50_us, "latency-p99": found.p99_us}


def together(cluster: Contender, seconds: float) -> dict[str, float]:
    """One request after the other, each with a record for five partitions of one leader."""
    leader = next(iter(cluster.nodes))
    cluster.create_in_sync("together", leader=leader, partitions=TOGETHER)
    batch = frames.batch_of(1).content
    frame = frames.produce_frame("together", [(index, batch) for index in range(TOGETHER)], acks=ALL_IN_SYNC)
    plan = Plan(1, 1, seconds=seconds, error_at=frames.error_at("together"))
    found = generator.run(cluster.port(leader), 2 * frame, plan)
    cluster.delete("together")
    return {"together-p50": found.p50_us}


def idle(cluster: Contender, seconds: float) -> dict[str, float]:
    processes = [psutil.Process(node.pid) for node in cluster.nodes.values()]

    def used_s() -> float:
        return sum(times.user + times.system for times in (each.cpu_times() for each in processes))

    before, began = used_s(), time.monotonic()
    threading.Event().wait(max(seconds, 5.0))
    return {"idle": 100 * (used_s() - before) / (time.monotonic() - began)}


class Writing:
    """Writes one record after the other, and notes when each was acknowledged."""

    def __init__(self, cluster: Contender, topic: str) -> None:
        settings = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0, **QUIET}
        quick = {"reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20, "retry.backoff.max.ms": 100}
        self._producer = Producer({**settings, **quick})
        self._topic = topic
        self.acknowledged: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        while not self._is_over.is_set():
            self._producer.produce(self._topic, b"x", on_delivery=self._done)
            while len(self._producer) and not self._is_over.is_set():
                self._producer.poll(0.01)
            self._is_over.wait(PAUSE_S)

    def _done(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.append(time.monotonic())

    def __enter__(self) -> Writing:
        self._thread.start()
        self.wait_for(100)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait_for(self, more: int) -> None:
        count = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= count, PATIENCE_S, "records are acknowledged")

    def longest_gap_ms(self, since: float) -> float:
        times = [at for at in self.acknowledged if at >= since]
        return max(later - at for at, later in pairwise(times)) * 1000


def shutdown(cluster: Contender, seconds: float) -> dict[str, float]:
    cluster.create_in_sync("shutdown")
    with Writing(cluster, "shutdown") as writing:
        node, since = cluster.nodes[cluster.leader("shutdown")], time.monotonic() - 0.1
        node.stop()
        writing.wait_for(100)
        gap_ms = writing.longest_gap_ms(since)
    node.start()
    cluster.delete("shutdown")
    return {"shutdown": gap_ms}


def leader_killed(cluster: Contender, seconds: float) -> dict[str, float]:
    """The time until a producer that looks for the leader every few milliseconds can write to the partition;
    librdkafka itself looks about once a second."""
    cluster.create_in_sync("killed")
    leader = cluster.leader("killed")
    while leader == cluster.active_controller():  # the loss of both at once is not measured
        cluster.delete("killed")
        cluster.create_in_sync("killed")
        leader = cluster.leader("killed")
    others = ",".join(address for node, address in cluster.addresses.items() if node != leader)
    admin, pause = AdminClient({"bootstrap.servers": others, **QUIET}), threading.Event()

    def is_led_again() -> bool:
        found = admin.list_topics("killed", timeout=10).topics["killed"].partitions[0].leader
        return found not in (leader, -1) or pause.wait(PAUSE_S)

    began = time.monotonic()
    cluster.nodes[leader].kill()
    wait_until(is_led_again, PATIENCE_S, "the partition is led again")
    producer = Producer({"bootstrap.servers": others, "acks": "all", "linger.ms": 0, **QUIET})
    producer.produce("killed", b"x")
    assert producer.flush(PATIENCE_S) == 0
    took_ms = (time.monotonic() - began) * 1000
    cluster.nodes[leader].start()
    cluster.delete("killed")
    return {"leader": took_ms}


def controller_killed(cluster: Contender, seconds: float) -> dict[str, float]:
    active = cluster.active_controller()
    others = ",".join(address for node, address in cluster.addresses.items() if node != active)
    admin = AdminClient({"bootstrap.servers": others, **QUIET})
    admin.list_topics(timeout=10)
    began = time.monotonic()
    cluster.nodes[active].kill()

    def is_made() -> bool:
        topic = NewTopic("after", num_partitions=1, replication_factor=1)
        future = admin.create_topics([topic], request_timeout=2, operation_timeout=2)["after"]
        error = future.exception(5)
        return error is None or "TOPIC_ALREADY_EXISTS" in str(error)

    wait_until(is_made, PATIENCE_S, "a topic is created")
    took_ms = (time.monotonic() - began) * 1000
    cluster.nodes[active].start()
    cluster.delete("after")
    return {"controller": took_ms}


TRIALS: dict[str, Callable[[Contender, float], dict[str, float]]] = {
    "produce-15k": produce("produce-15k", SMALL, 32),
    "produce-880k": produce("produce-880k", LARGE, 4),
    "latency": latency,
    "together": together,
    "idle": idle,
    "shutdown": shutdown,
    "leader": leader_killed,
    "controller": controller_killed,
}


MANY = "many"  # ten thousand partitions, in clusters of its own
MANY_100K = "many-100k"  # a hundred thousand and groups, in a cluster of Barnabas only
WARMED = ("produce-15k", "produce-880k", "latency", "together")
WARM_UP = 3  # times as long as a round: Java's compiler is done by then


def ours(stack: ExitStack) -> Contender:
    cluster: Cluster = stack.enter_context(Cluster(combined=NODES))
    addresses = {each.id: each.address for each in cluster.nodes.values()}
    return Contender("Barnabas", dict(cluster.nodes), addresses)


def theirs(stack: ExitStack) -> Contender:
    cluster = stack.enter_context(ApacheCluster(NODES, heap=HEAP))
    nodes = {number: cluster.node(number) for number in range(1, NODES + 1)}
    return Contender("Apache Kafka", dict(nodes), {number: node.bootstrap for number, node in nodes.items()})


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(ours) / max(statistics.median(theirs), 1e-9)


def lines(pair: Sequence[Contender]) -> list[tuple[str, ...]]:
    found = []
    for row in ROWS:
        ours, theirs = (each.values.get(row.name, []) for each in pair)
        if row.of_own and ours:
            value = statistics.median(ours)
            verdict = "pass" if row.holds(value) else "FAIL"
            shown = (f"{value:,.1f} {row.unit}", "", "", f"{row.better.value} {row.floor}", verdict)
            found.append((row.title, *shown))
        if not ours or not theirs:
            continue
        ratio = ratio_of(ours, theirs)
        verdict = "pass" if row.holds(ratio) else "FAIL"
        values = [f"{statistics.median(each):,.1f} {row.unit}" for each in (ours, theirs)]
        found.append((row.title, *values, f"{ratio:.2f}", f"{row.better.value} {row.floor}", verdict))
    return found


class Run:
    """Runs trials one after the other; if one fails, it is reported and the others still run."""

    def __init__(self, console: Console, seconds: float, rounds: int) -> None:
        self._console = console
        self._seconds = seconds
        self._rounds = rounds
        self.failures = 0
        self.relay_us = 0.0
        self.section = ""  # of the page, if `hundred_thousand` ran

    def _try(self, what: str, trial: Callable[[], dict[str, list[float]]], into: Contender) -> None:
        began = time.monotonic()
        try:
            found = trial()
        except Exception as error:
            self.failures += 1
            self._console.print(f"FAILED {what}: {into.name}: {error!r}")
            return
        for row, values in found.items():
            into.values.setdefault(row, []).extend(values)
        told = ", ".join(f"{row} {', '.join(f'{value:,.1f}' for value in found[row])}" for row in found)
        self._console.print(f"{what}: {into.name}: {told} ({time.monotonic() - began:.0f} s)")

    def side_by_side(self, names: Sequence[str], into: Sequence[Contender]) -> None:
        """Run both clusters, and each trial on one and then on the other."""
        with ExitStack() as stack:
            pair = [ours(stack), theirs(stack)]
            if "latency" in names:
                self.relay_us = relay.p50_us(self._seconds)
                self._console.print(f"latency: a relay of four processes: {self.relay_us:.0f} µs")
            for name in names:
                for each in pair if name in WARMED else ():
                    self._try(f"{name}, warming up", self._trial(name, each, WARM_UP), each)
                for number in range(self._rounds):
                    for each, known in zip(pair, into, strict=True):
                        self._try(f"{name}, round {number + 1}", self._trial(name, each), known)

    def _trial(
        self, name: str, cluster: Contender, times: float = 1.0
    ) -> Callable[[], dict[str, list[float]]]:
        def measure() -> dict[str, list[float]]:
            found = TRIALS[name](cluster, times * self._seconds)
            return {row: [value] for row, value in found.items()}

        return measure

    def with_many_partitions(self, into: Sequence[Contender]) -> None:
        """Run the trial with ten thousand partitions on one cluster at a time: the machine is small."""
        for make, known in zip((ours, theirs), into, strict=True):
            self._try(MANY, partial(self._measure_many, make, known.name), known)

    def hundred_thousand(self, into: Contender, partitions: int, groups: int) -> None:
        """Run the phases of `bench.cluster_stalls`, on Barnabas alone."""
        replicated = min(cluster_stalls.REPLICATED, partitions)
        load = os.getloadavg()[0]

        def measure() -> dict[str, list[float]]:
            work = partial(cluster_stalls.measure, kill=True, groups=groups)
            phases = cluster_stalls.run(self._console, work, partitions, replicated)
            self.section = cluster_page.section(phases, partitions, replicated, groups, load)
            return {MANY_100K: [max(phase.cpu_ms for phase in phases)]}

        self._try(MANY_100K, measure, into)

    def _measure_many(self, make: Callable[[ExitStack], Contender], name: str) -> dict[str, list[float]]:
        with ExitStack() as stack:
            cluster = make(stack)
            return many_partitions.measure(
                cluster,
                lambda: idle(cluster, self._seconds)["idle"],
                lambda what: self._console.print(f"{name}: {what}"),
            )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument(
        "trials", nargs="*", metavar="TRIAL", help=f"only these: {', '.join([*TRIALS, MANY, MANY_100K])}"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a load lasts")
    parser.add_argument("--partitions", type=int, default=cluster_stalls.PARTITIONS, help="of many-100k")
    parser.add_argument("--groups", type=int, default=cluster_stalls.GROUPS, help="of many-100k")
    options = parser.parse_args(arguments)
    everything = [*TRIALS, MANY, MANY_100K]
    names = options.trials or everything
    unknown = [name for name in names if name not in everything]
    if unknown or (set(names) != {MANY_100K} and (missing := apache.available())):
        print(f"no such trial: {', '.join(unknown)}" if unknown else missing, file=sys.stderr)
        return 2
    console = Console() if sys.stdout.isatty() else Console(width=150)
    pair = [Contender("Barnabas", {}, {}), Contender("Apache Kafka", {}, {})]
    run = Run(console, options.seconds, options.rounds)
    if side_by_side := [name for name in names if name in TRIALS]:
        run.side_by_side(side_by_side, pair)
    if MANY in names:
        run.with_many_partitions(pair)
    if MANY_100K in names:
        run.hundred_thousand(pair[0], options.partitions, options.groups)
    found = lines(pair)
    table = Table(*cluster_page.HEADS)
    for line in found:
        table.add_row(*line)
    console.print(table)
    is_whole = (options.partitions, options.groups) == (cluster_stalls.PARTITIONS, cluster_stalls.GROUPS)
    cluster_page.write(
        first="" if options.trials else cluster_page.first(found, options.rounds, run.relay_us),
        many=run.section if is_whole else "",
    )
    return 1 if run.failures or any(line[-1] == "FAIL" for line in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

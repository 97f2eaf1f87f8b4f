"""Nodes under load while they are killed, paused, wiped, and cut off from each other: nothing acknowledged is
lost, nothing is there twice, each input of transactions is in their output once. The long form takes every
fault on three and on five hosts, for minutes, and prints how long clients waited."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.testing import apache
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation

from .faults import Faults
from .gaps import Gaps
from .load import JAVA, MOVED, NUMBERS, JavaNumbers, Moves, Numbers, Readers, check_moves, check_numbers
from .namespaces import HostCluster, Links, missing

SOON = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
# Who comes back with an empty disk takes its own place among the voters.
JOINING = {**SOON, "controller.quorum.auto.join.enable": "true"}
SHORT = ("kill -9 of a leader", "SIGSTOP of the controller", "disk wiped")
SHORT_PARTITIONS, LONG_PARTITIONS = 2, 6
SHORT_HOLD_S, LONG_HOLD_S = (0.0, 0.5), (4.0, 10.0)
LONG_S_MIN = 240.0
GOES_ON = 20
REASON = missing()


class Workers:
    """Everybody who works on the cluster, and what became of it."""

    def __init__(self, cluster: Cluster, partitions: int, *, java: bool) -> None:
        topics = [NUMBERS, MOVED, *([JAVA] if java else [])]
        for topic in topics:
            cluster.create_topic(topic, partitions, replication_factor=3)
        self.topics = topics
        self.bootstrap = cluster.bootstrap
        self.numbers = Numbers(cluster.bootstrap, partitions, pause_s=0.03)
        self.readers = [Readers(cluster.bootstrap, protocol) for protocol in ("classic", "consumer")]
        self.moves = Moves(cluster.bootstrap)
        self.java = JavaNumbers(cluster.bootstrap) if java else None
        works = [self.numbers, self.moves, *self.readers]
        wait_until(lambda: all(each.events.count() > 20 for each in works), 90, what="everybody works")

    def events(self) -> list[tuple[str, object]]:
        readers = [("readers", each.events) for each in self.readers]
        return [("numbers", self.numbers.events), ("moves", self.moves.events), *readers]

    def wait_until_it_goes_on(self) -> None:
        """In every partition, whatever is broken."""
        before = {each: len(found) for each, found in self.numbers.acknowledged.items()}

        def goes_on() -> bool:
            found = self.numbers.acknowledged
            return all(len(found[each]) >= count + GOES_ON for each, count in before.items())

        wait_until(goes_on, 60, what="writing goes on in every partition")

    def check(self) -> str:
        self.numbers.stop()
        there = check_numbers(self.bootstrap, NUMBERS, self.numbers)
        if self.java is not None:
            self.java.stop()
            assert self.java.acknowledged
            check_numbers(self.bootstrap, JAVA, self.java)
        check_moves(self.bootstrap, self.moves, there)
        for group in self.readers:
            wait_until(
                lambda group=group: not group.missing(self.numbers.acknowledged),  # type: ignore[misc]
                60,
                what=f"the {group.protocol} group has read all",
            )
            group.stop()
        written = sum(len(each) for each in there.values())
        moves = self.moves
        anew = f"transactions were begun anew {moves.begun_anew} times ({moves.stuck} stuck)"
        return f"{written} records, each moved once; {anew}"


@contextmanager
def hosts(nodes: int) -> Iterator[tuple[Cluster, Links]]:
    with Links(nodes).up() as links, HostCluster(nodes, dict(JOINING), dynamic=True) as cluster:
        yield cluster, links


def live_through(faults: Faults, workers: Workers, kind: str, hold_s: float, gaps: Gaps) -> None:
    start = time.monotonic()
    with faults.kinds[kind]():
        end = time.monotonic() + hold_s
        wait_until(lambda: time.monotonic() >= end, hold_s + 60, what="the fault lasts")
        if kind != "leader and clients cut":  # what nobody can reach is not written to
            workers.wait_until_it_goes_on()
    faults.wait_until_mended(workers.topics)
    workers.wait_until_it_goes_on()
    gaps.note(kind, start, time.monotonic(), workers.events())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(combined=3, dynamic=True, overrides=JOINING) as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_while_nodes_are_killed_paused_and_wiped(cluster: Cluster) -> None:
    rng = random.Random(7)
    workers, faults, gaps = Workers(cluster, SHORT_PARTITIONS, java=False), Faults(cluster, rng), Gaps()
    for kind in SHORT:
        live_through(faults, workers, kind, rng.uniform(*SHORT_HOLD_S), gaps)
    print(f"{workers.check()}\n{gaps.table()}")


def test_a_topic_that_a_paused_controller_was_asked_for_is_made_when_it_wakes(cluster: Cluster) -> None:
    """It is not the active one any more by then: the node it runs on asks the one that is."""
    paused = Faults(cluster, random.Random(7)).controller()
    other = next(node for node in cluster.brokers if node is not paused)
    with talk_to(paused) as talk, talk_to(other) as meanwhile:
        paused.pause()
        try:
            talk.send(create("late"))
            assert made(meanwhile.ask(*create("meanwhile"))) == [("meanwhile", 0)]  # by another controller
        finally:
            paused.resume()
        assert made(talk.receive()) == [("late", 0)]


def test_the_last_node_goes_without_asking_a_quorum_that_is_gone(cluster: Cluster) -> None:
    *others, last = cluster.brokers
    for node in others:
        node.kill()
    last.stop()
    assert any("stops without a controlled shutdown: NOT_CONTROLLER" in line for line in last.lines)


def talk_to(node: ClusterNode) -> Conversation:
    return Conversation(None, port=int(node.address.rpartition(":")[2]))  # type: ignore[arg-type]


def create(name: str) -> tuple[CreateTopicsRequest, int]:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=2)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7


def made(answer: CreateTopicsResponse) -> list[tuple[str, int]]:
    return [(each.name, each.error_code) for each in answer.topics]


@pytest.mark.long
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("nodes", [3, 5])
def test_nothing_acknowledged_is_lost_in_minutes_of_all_faults(
    nodes: int, request: pytest.FixtureRequest
) -> None:
    seconds = max(LONG_S_MIN, request.config.getoption("--soak-seconds"))
    rng = random.Random(nodes)
    gaps = Gaps()
    with hosts(nodes) as (cluster, links):
        workers = Workers(cluster, LONG_PARTITIONS, java=apache.available() is None)
        faults = Faults(cluster, rng, links)
        start, turns = time.monotonic(), 0
        while not turns or time.monotonic() - start < seconds:
            for kind in rng.sample(list(faults.kinds), len(faults.kinds)):
                print(f"{time.monotonic() - start:7.1f} s: {kind}", flush=True)
                live_through(faults, workers, kind, rng.uniform(*LONG_HOLD_S), gaps)
            turns += 1
        took_s = time.monotonic() - start
        told = workers.check()
    print(f"{nodes} nodes, {sum(gaps.times.values())} faults in {took_s:.0f} s: {told}\n\n{gaps.table()}")

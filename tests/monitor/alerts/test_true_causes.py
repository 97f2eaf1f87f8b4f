"""Default rules fire for their true causes in a cluster, and end after them. Waiting times are those of the
rules: the evaluator's clock is moved, the cluster's is not.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client.admin.topics import NewTopic
from barnabas.client.core.topology import TopicPartition
from barnabas.engine.timeline import Entry, Kind, Timeline
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.pipeline.observe.metrics import Endpoint
from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .test_alert_service import barnabas
from .test_measuring import World

pytestmark = pytest.mark.long
PATIENCE_S = 90.0
MINUTE_MS = 60_000
OTHERS = ("DiskAlmostFull", "DiskFullSoon")  # depend on the volume of this machine
TOPICS = {
    "single": ([[3]], {}),
    "strict": ([[2, 3]], {"min.insync.replicas": "2"}),
    "risky": ([[2, 3]], {"unclean.leader.election.enable": "true"}),
    "groups": ([[1]], {}),
    "volume": ([[1]], {"segment.bytes": "1048576"}),
}


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small volume of its own."""
    path = tmp_path_factory.mktemp("volume")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(path)], capture_output=True
    )
    yield path
    if mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture(scope="module")
def cluster(volume: Path) -> Iterator[Cluster]:
    found = Cluster(3, controllers=3, overrides={"broker.session.timeout.ms": 3000})
    for node, port in zip(found.nodes.values(), free_ports(6), strict=True):
        node.properties["barnabas.metrics.port"] = str(port)
    found[1].properties["log.dirs"] += f",{volume / 'logs'}"
    with found:
        for name, (assignments, configs) in TOPICS.items():
            topic = NewTopic(name, assignments=assignments, configs=configs)
            found.ask(lambda admin, topic=topic: admin.create_topic(topic))
        found.create_topic("wide", 3, 3)
        yield found


class Alerts:
    def __init__(self, world: World) -> None:
        self.world = world
        world.now_ms = int(time.time() * 1000)
        self.run(started(world))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.world._loop.run(work)

    def until(self, is_so: Callable[[set[str]], bool], after_ms: int = 6 * MINUTE_MS) -> None:
        seen: set[str] = set()

        def looks() -> bool:
            nonlocal seen
            self.run(asyncio.sleep(0.2))  # the lag of groups is read meanwhile
            if not after_ms:
                self.world.now_ms = int(time.time() * 1000)
            seen = self.world.look(after_ms)
            return is_so(seen)

        wait_until(looks, PATIENCE_S, lambda: f"{seen} {self.world.unknown}")

    def fires(self, *names: str, after_ms: int = 6 * MINUTE_MS) -> dict[str, str]:
        self.until(lambda seen: set(names) <= seen, after_ms)
        return {each.rule: each.summary for each in self.world.alerts}

    def end(self, after_ms: int = 6 * MINUTE_MS) -> None:
        self.until(lambda seen: not seen, after_ms)


@pytest.fixture
def alerts(cluster: Cluster) -> Iterator[Callable[..., Alerts]]:
    made: list[World] = []
    with asyncio.Runner() as loop:

        def make(only: tuple[str, ...] = (), **file: Any) -> Alerts:
            ports = [each.properties["barnabas.metrics.port"] for each in cluster.nodes.values()]
            off = [each.name for each in DEFAULTS if (each.name not in only if only else each.name in OTHERS)]
            entry = {
                "name": "main",
                "properties": {"bootstrap.servers": cluster.bootstrap},
                "metrics": [f"http://127.0.0.1:{port}/metrics" for port in ports],
            }
            rules = [{"name": each, "enabled": False} for each in off]
            given = {"clusters": [entry], "consumer_groups": {"deny": "."}, "rules": rules}
            world = World(loop, **{**given, **file})
            made.append(world)
            return Alerts(world)

        yield make
        for each in made:
            each.end()


def isr(cluster: Cluster, topic: str) -> list[int]:
    found = cluster.ask(lambda admin: admin.describe_topics([topic]))
    return sorted(found[0].partitions[0].isr)


def test_a_broker_that_is_gone(cluster: Cluster, alerts: Any) -> None:
    found = alerts()
    found.end()
    cluster[3].kill()
    told = found.fires(
        "OfflinePartitions", "UnderMinIsrPartitions", "UnderReplicatedPartitions", "BrokerGone"
    )
    assert "single-0" in told["OfflinePartitions"]
    assert "strict-0" in told["UnderMinIsrPartitions"]
    assert "broker 3 lacks " in told["UnderReplicatedPartitions"]
    health = barnabas("health", "--bootstrap-server", cluster.bootstrap)
    assert health.returncode == 1
    for words in (
        "have no leader: single-0",
        "refuse acks=all: strict-0",
        "do not answer: 3 (",
        "out of sync",
    ):
        assert words in health.stdout, health.stdout
    cluster[3].start()
    found.end()


def test_an_unclean_election(cluster: Cluster, alerts: Any) -> None:
    found = alerts(("UncleanElections", "CheckBlind"))
    found.end()
    cluster[3].kill()
    wait_until(lambda: isr(cluster, "risky") == [2], PATIENCE_S)
    cluster[2].kill()
    cluster[3].start()
    told = found.fires("UncleanElections", after_ms=MINUTE_MS)
    assert told["UncleanElections"].startswith("1 leaders were elected that may lack records (127.0.0.1:")
    cluster[2].start()
    found.end()


def test_clients_over_their_quota(cluster: Cluster, alerts: Any) -> None:
    found = alerts(("ClientsThrottled",))
    who = {"client-id": "greedy"}
    cluster.ask(lambda admin: admin.alter_quotas(who, {"producer_byte_rate": 1000.0}))
    try:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "greedy", "linger.ms": 0})
        for _ in range(20):
            producer.produce("groups", b"x" * 5_000, partition=0)
            producer.poll(0.05)
        told = found.fires("ClientsThrottled")
        assert "greedy" in told["ClientsThrottled"]
    finally:
        cluster.ask(lambda admin: admin.alter_quotas(who, {"producer_byte_rate": None}))
    producer.flush(60)
    found.end()


def test_a_controller_that_falls_behind(cluster: Cluster, alerts: Any) -> None:
    found = alerts(("QuorumFallsBehind",))
    quorum = cluster.ask(lambda admin: admin.describe_quorum())
    follower = next(each for each in cluster.controllers if each.id != quorum.leader_id)
    follower.pause()
    try:
        told = found.fires("QuorumFallsBehind")
        assert f"voter {follower.id}" in told["QuorumFallsBehind"]
        health = barnabas("health", "--bootstrap-server", cluster.bootstrap)
        assert f"voter {follower.id}" in health.stdout
    finally:
        follower.resume()
    found.end()


def test_a_part_of_a_pipeline_that_failed(alerts: Any, tmp_path: Path) -> None:
    timeline = Timeline(tmp_path / "timeline")
    now = time.time()
    timeline.record(Entry(Kind.SOURCE, "orders", "1", now - 5, now))
    with closing(Endpoint("shop", timeline, "127.0.0.1", 0)) as endpoint:
        metrics = [f"http://127.0.0.1:{endpoint.port}/metrics"]
        found = alerts(("PipelineFailing",), metrics=metrics)
        found.end()
        timeline.record(Entry(Kind.SOURCE, "orders", "2", now - 2, now, error="the disk is gone"))
        told = found.fires("PipelineFailing", after_ms=MINUTE_MS)
        assert "orders" in told["PipelineFailing"]
        found.end()


def test_groups_that_fail_and_fall_behind(cluster: Cluster, alerts: Any) -> None:
    at = TopicPartition("groups", 0)
    names = ("GroupFailing", "GroupFallsBehind", "RetentionOvertakesGroup")
    quick = [{"name": each, "for": "0s", "keep": "0s"} for each in names]
    quick += [{"name": each.name, "enabled": False} for each in DEFAULTS if each.name not in names]
    found = alerts(consumer_groups={}, rules=quick)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    committed = {"stalled": 1, "slow": 1}

    def commit(group: str, offset: int) -> None:
        cluster.ask(lambda admin: admin.alter_offsets(group, {at: offset}))

    def round() -> None:
        for _ in range(10):
            producer.produce("groups", b"x", partition=0)
        producer.flush(10)
        found.run(asyncio.sleep(5.5))  # the ends are read every five seconds
        for group in committed:
            commit(group, committed[group])
        committed["slow"] += 1

    for _ in range(5):  # half of the commits that are judged
        round()
    told = found.fires("GroupFailing", "GroupFallsBehind", after_ms=0)
    assert "group stalled of main" in told["GroupFailing"]
    cluster.ask(lambda admin: admin.delete_records({at: 20}))
    told = found.fires("RetentionOvertakesGroup", after_ms=0)
    assert "group s" in told["RetentionOvertakesGroup"]
    end = cluster.ask(lambda admin: latest(admin, at))
    for group in committed:
        commit(group, end)
    found.end(after_ms=0)


async def latest(admin: Any, at: TopicPartition) -> int:
    from barnabas.client.admin.offsets import OffsetSpec

    found = (await admin.list_offsets({at: OffsetSpec.LATEST}))[at]
    return int(found.offset)


async def started(world: World) -> None:
    world._measuring.start()


def test_a_volume_that_fills_up(cluster: Cluster, alerts: Any, volume: Path) -> None:
    if not os.path.ismount(volume):
        pytest.skip("no volume can be mounted: this needs root")
    filler = volume / "filler"
    found = alerts(("DiskFullSoon", "DiskAlmostFull", "OfflineLogDirs"))
    is_ours: Callable[[str], bool] = lambda text: str(volume) in text  # noqa: E731
    for step in range(14):
        filler.write_bytes(b"x" * (step * 1_000_000))
        found.world.look(6 * MINUTE_MS)
    ours = {each.rule: each.summary for each in found.world.alerts if is_ours(each.summary)}
    assert set(ours) == {"DiskFullSoon"}, ours
    filler.write_bytes(b"x" * 58_000_000)
    found.fires("DiskAlmostFull")
    assert any(each.rule == "DiskAlmostFull" and is_ours(each.summary) for each in found.world.alerts)
    health = barnabas("health", "--bootstrap-server", cluster.bootstrap)
    assert f"of the volume of {volume}" in health.stdout, health.stdout
    filler.unlink()

    def none_of_ours(seen: set[str]) -> bool:
        return not any(is_ours(each.summary) for each in found.world.alerts)

    found.until(none_of_ours, 60 * MINUTE_MS)

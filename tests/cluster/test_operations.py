"""What operators do to a cluster while clients work: restart it node by node and raise its features, move
replicas under a throttle or change their mind, lose a disk of several."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.admin.topics import NewTopic
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until

from .faults import Faults
from .load import MOVED, NUMBERS, Moves, Numbers, Readers, check_moves, check_numbers
from .replicated import SOON, Writer, leader, metadata, read, wait_for_isr

pytestmark = pytest.mark.timeout(300)
OLD_RELEASE, OLD_LEVEL = "3.9-IV0", 21
SEGMENT_BYTES = 1 << 20
DIRS = ("a", "b")


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """As an older release left it; brokers have two log dirs."""
    cluster = Cluster(brokers=3, controllers=1, overrides=SOON)
    for node in cluster.nodes.values():
        node.release_version = OLD_RELEASE
        if node.is_broker:
            node.properties["log.dirs"] = ",".join(f"{node.folder}-{each}" for each in DIRS)
    with cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """Whole again, whatever the test before did."""
    running.start_again()
    return running


def tool(cluster: Cluster, *arguments: str, is_refused: bool = False) -> str:
    command = [sys.executable, "-m", "barnabas", *arguments, "--bootstrap-server", cluster.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert bool(done.returncode) is is_refused, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_cluster_is_restarted_node_by_node_and_upgraded_while_clients_work(cluster: Cluster) -> None:
    for topic in (NUMBERS, MOVED):
        cluster.create_topic(topic, 3, replication_factor=3)
    numbers, moves = Numbers(cluster.bootstrap, 3, pause_s=0.03), Moves(cluster.bootstrap)
    readers = Readers(cluster.bootstrap, "classic")
    works = (numbers, moves, readers)
    wait_until(lambda: all(each.events.count() > 10 for each in works), 60, what="everybody works")
    mended = Faults(cluster, random.Random(0))
    for node in cluster.nodes.values():
        before = numbers.count
        node.stop()
        node.start()
        mended.wait_until_mended([NUMBERS, MOVED])
        wait_until(lambda before=before: numbers.count > before + 20, 30, what="writing goes on")  # type: ignore[misc]

    features = cluster.ask(lambda admin: admin.describe_features())
    assert features.finalized["metadata.version"] == OLD_LEVEL
    tool(cluster, "features", "upgrade", "--release-version", "4.3")
    features = cluster.ask(lambda admin: admin.describe_features())
    assert features.finalized["metadata.version"] == features.supported["metadata.version"][1]
    before = numbers.count
    wait_until(lambda: numbers.count > before + 50, 30, what="writing goes on")
    numbers.stop()
    there = check_numbers(cluster.bootstrap, NUMBERS, numbers)
    check_moves(cluster.bootstrap, moves, there)
    wait_until(lambda: not readers.missing(numbers.acknowledged), 30, what="the group has read all")
    readers.stop()
    cluster.create_topic("afterwards", replication_factor=3)


def fill(cluster: Cluster, topic: str, replicas: list[int], megabytes: int) -> Writer:
    """A topic of one partition with so much in it."""
    configs = {"segment.bytes": str(SEGMENT_BYTES), "min.insync.replicas": "1"}
    cluster.ask(lambda admin: admin.create_topic(NewTopic(topic, assignments=[replicas], configs=configs)))
    writer = Writer(cluster.bootstrap, topic)
    writer.write(megabytes * 16, size=1 << 16)
    writer.flush()
    return writer


def plan_of(folder: Path, topic: str, replicas: list[int]) -> tuple[str, str]:
    plan = folder / f"{topic}.json"
    moved = [{"topic": topic, "partition": 0, "replicas": replicas}]
    plan.write_text(json.dumps({"version": 1, "partitions": moved}))
    return "--reassignment-json-file", str(plan)


def throttles(cluster: Cluster, topic: str) -> str:
    """Every setting of a throttle that is set anywhere."""
    shown = tool(cluster, "configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    shown += tool(cluster, "configs", "--describe", "--entity-type", "brokers")
    return "\n".join(line for line in shown.splitlines() if "throttled" in line)


def test_a_reassignment_keeps_to_its_throttle_which_verify_removes(cluster: Cluster, tmp_path: Path) -> None:
    megabytes, rate = 4, 800_000
    fill(cluster, "heavy", [1], megabytes)
    plan = plan_of(tmp_path, "heavy", [2])
    start = time.monotonic()
    tool(cluster, "reassign-partitions", "--execute", "--throttle", str(rate), *plan)
    wait_until(lambda: size_of(cluster[2], "heavy") > 0, what="it has begun")
    assert set(metadata(cluster, "heavy").replicas) == {1, 2}
    wait_until(lambda: metadata(cluster, "heavy").replicas == [2], 60, what="it has moved")
    took_s = time.monotonic() - start
    assert megabytes * (1 << 20) / took_s < 1.2 * rate
    assert str(rate) in throttles(cluster, "heavy")
    assert "is completed" in tool(cluster, "reassign-partitions", "--verify", *plan)
    assert throttles(cluster, "heavy") == ""


def size_of(node: ClusterNode, topic: str) -> int:
    return sum(file.stat().st_size for folder in copies(node, topic) for file in folder.glob("*.log"))


def test_a_reassignment_is_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    writer = fill(cluster, "stays", [1], 8)
    plan = plan_of(tmp_path, "stays", [3, 2])
    tool(cluster, "reassign-partitions", "--execute", "--throttle", "200000", *plan)
    wait_until(lambda: set(metadata(cluster, "stays").replicas) == {1, 2, 3}, what="it is under way")
    writer.write_more(10)
    assert "Successfully cancelled" in tool(cluster, "reassign-partitions", "--cancel", *plan)
    wait_until(lambda: metadata(cluster, "stays").replicas == [1], what="it stays where it was")
    assert throttles(cluster, "stays") == ""
    writer.write_more(10)
    writer.flush()
    assert writer.failed == []
    assert len(read(cluster.bootstrap, "stays", 0, writer.sent)) == writer.sent
    for node in cluster.brokers:
        if node.id != 1:
            wait_until(lambda node=node: not copies(node, "stays"), 20, what="copies are put away")  # type: ignore[misc]


def copies(node: ClusterNode, topic: str) -> list[Path]:
    folders = [Path(each) for each in node.properties["log.dirs"].split(",")]
    return [
        path for folder in folders for path in folder.glob(f"{topic}-*") if not path.name.endswith("-delete")
    ]


def test_leaders_of_a_lost_log_dir_move_and_the_rest_goes_on(cluster: Cluster) -> None:
    names = [f"dirs-{number}" for number in range(4)]
    configs = {"segment.bytes": str(SEGMENT_BYTES), "min.insync.replicas": "2"}
    for name in names:
        new = NewTopic(name, assignments=[[1, 2, 3]], configs=configs)
        cluster.ask(lambda admin, new=new: admin.create_topic(new))
    writers = {name: Writer(cluster.bootstrap, name) for name in names}
    for writer in writers.values():
        writer.write_more(5)
    lost = Path(f"{cluster[1].properties['log.dirs'].split(',')[1]}")
    there = {name for name in names if (lost / f"{name}-0").exists()}
    assert there and there != set(names)  # log dirs share the work
    shutil.rmtree(lost)  # nobody notices before a file is to be made there
    for name in there:
        writer = writers[name]

        def has_moved(writer: Writer = writer, name: str = name) -> bool:
            writer.write(size=1 << 16)
            return leader(cluster, name).id != 1

        wait_until(has_moved, 30, what=f"{name} is led elsewhere")
    for name, writer in writers.items():
        writer.write_more(5)
        writer.flush()
        assert writer.failed == []
        assert len(read(cluster.bootstrap, name, 0, writer.sent)) == writer.sent
    assert {leader(cluster, name).id for name in set(names) - there} == {1}
    assert cluster[1].is_running

    cluster[1].stop()
    cluster[1].format(ignore_formatted=True)  # a new disk in the place of the old one
    cluster[1].start()
    for name in names:
        wait_for_isr(cluster, name, {1, 2, 3})

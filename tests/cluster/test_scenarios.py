"""What people try on their first cluster, with the tools that they would use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

from .replicated import Writer, read
from .test_kills import SOON

pytestmark = pytest.mark.timeout(300)
LINE = re.compile(r"Partition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S*)")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, controllers=3, overrides=SOON | {"min.insync.replicas": 1}) as running:
        yield running


def tool(cluster: Cluster, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *arguments, "--bootstrap-server", cluster.bootstrap],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def described(cluster: Cluster, topic: str) -> dict[int, tuple[int, list[int], set[int]]]:
    """Leader, replicas and in-sync replicas of each partition, as `topics --describe` shows them."""
    shown = tool(cluster, "topics", "--describe", "--topic", topic)
    return {
        int(index): (
            int(leader) if leader.isdigit() else -1,
            [int(each) for each in replicas.split(",")],
            {int(each) for each in isr.split(",") if each},
        )
        for index, leader, replicas, isr in LINE.findall(shown)
    }


def is_whole(cluster: Cluster, topic: str, replicas: list[int] | None = None) -> bool:
    return all(
        leader > 0 and isr == set(there) and (replicas is None or there == replicas)
        for leader, there, isr in described(cluster, topic).values()
    )


def write(cluster: Cluster, topic: str, count: int) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "barnabas", "produce", "--topic", topic),
            *("--bootstrap-server", cluster.bootstrap, "--producer-property", "acks=all"),
        ],
        input="".join(f"{number}\n" for number in range(count)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def count_of(cluster: Cluster, topic: str) -> int:
    shown = tool(cluster, "get-offsets", "--topic", topic)
    return sum(int(line.rpartition(":")[2]) for line in shown.split())


def move(cluster: Cluster, folder: Path, topic: str, replicas: list[int]) -> None:
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]})
    )
    tool(cluster, "reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    wait_until(lambda: is_whole(cluster, topic, replicas), 60, what=f"{topic} is on {replicas}")
    done = tool(cluster, "reassign-partitions", "--verify", "--reassignment-json-file", str(plan))
    assert f"Reassignment of partition {topic}-0 is completed." in done


def test_three_partitions_with_two_replicas_each_are_described(cluster: Cluster) -> None:
    tool(
        cluster,
        "topics",
        "--create",
        "--topic",
        "zerg.hydra",
        "--partitions",
        "3",
        "--replication-factor",
        "2",
    )
    wait_until(lambda: is_whole(cluster, "zerg.hydra"), 30, what="all replicas are in sync")
    found = described(cluster, "zerg.hydra")
    assert sorted(found) == [0, 1, 2]
    assert all(len(set(replicas)) == 2 and leader == replicas[0] for leader, replicas, _ in found.values())


def test_brokers_die_and_come_back_a_paused_controller_is_fenced_and_leaders_are_balanced_again(
    cluster: Cluster,
) -> None:
    tool(cluster, "topics", "--create", "--topic", "balanced", "--replica-assignment", "3:1:2,1:3:2")
    write(cluster, "balanced", 100)
    cluster[3].kill()
    cluster[1].kill()
    wait_until(
        lambda: {p[0] for p in described(cluster, "balanced").values()} == {2}, 60, what="2 leads both"
    )
    write(cluster, "balanced", 100)
    before = cluster.ask(lambda admin: admin.describe_quorum())
    paused = cluster[before.leader_id]
    paused.pause()
    cluster[3].start()  # another controller lets them in
    cluster[1].start()
    wait_until(lambda: is_whole(cluster, "balanced"), 60, what="all replicas are in sync")
    after = cluster.ask(lambda admin: admin.describe_quorum())
    assert after.leader_id != before.leader_id and after.leader_epoch > before.leader_epoch
    paused.resume()
    wait_until(
        lambda: any("no longer leads the quorum" in line for line in paused.lines),
        what="the paused controller learns that it does not lead",
    )
    assert cluster.ask(lambda admin: admin.describe_quorum()).leader_id == after.leader_id
    tool(cluster, "leader-election", "--election-type", "preferred", "--all-topic-partitions")
    wait_until(
        lambda: [p[0] for _, p in sorted(described(cluster, "balanced").items())] == [3, 1],
        30,
        what="preferred leaders lead",
    )
    assert count_of(cluster, "balanced") == 200


@pytest.mark.long
def test_replicas_are_added_moved_and_taken_out_and_a_dead_broker_is_replaced_by_an_empty_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    tool(cluster, "topics", "--create", "--topic", "growing", "--replica-assignment", "1")
    writer = Writer(cluster.bootstrap, "growing")  # it is running all the time
    writer.write_more(500)
    move(cluster, tmp_path, "growing", [1, 2])  # a higher replication factor
    writer.write_more(100)
    cluster.add_broker(4).start()
    move(cluster, tmp_path, "growing", [2, 3, 4])  # to a broker that is new
    writer.write_more(100)

    out = tool(cluster, "drain", "4")
    assert "Broker 4 has no replicas any more." in out
    assert all(4 not in replicas for _, replicas, _ in described(cluster, "growing").values())
    assert is_whole(cluster, "growing")
    cluster[4].stop()
    tool(cluster, "cluster", "unregister", "--id", "4")
    wait_until(lambda: {each.id for each in nodes_of(cluster)} == {1, 2, 3}, what="it is unregistered")
    writer.write_more(100)

    dead = described(cluster, "growing")[0][1][0]
    cluster[dead].kill()
    cluster[dead].wipe()
    writer.write_more(100)
    cluster[dead].start()
    wait_until(lambda: is_whole(cluster, "growing"), 60, what="the empty broker is in sync")
    writer.write_more(100)
    writer.flush()
    assert writer.failed == []
    assert read(cluster.bootstrap, "growing", 0, writer.sent) == list(range(writer.sent))


def nodes_of(cluster: Cluster) -> list[Any]:
    """Brokers that are registered, whether they run or not."""

    async def ask(admin: Any) -> Any:
        return await admin.describe_cluster(fenced=True)

    return list(cluster.ask(ask).nodes)

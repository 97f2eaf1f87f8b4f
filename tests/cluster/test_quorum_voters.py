"""Voters that come and go while the quorum works (KIP-853), with the tools that people use for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin.voters import VoterAddress
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.disk import REAL_DISK
from barnabas.storage.files import meta_properties
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until

ONE_REPLICA = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    # Small snapshots, and little kept: who comes late must fetch one.
    "metadata.log.max.record.bytes.between.snapshots": 10_000,
    "metadata.max.retention.bytes": 1_000,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, controllers=1, dynamic=True, overrides=ONE_REPLICA) as running:
        yield running


def quorum(cluster: Cluster) -> Any:
    return cluster.ask(lambda admin: admin.describe_quorum())


def voters(cluster: Cluster) -> set[int]:
    return {voter.id for voter in quorum(cluster).voters}


def directory_id(node: ClusterNode) -> bytes:
    found = meta_properties.load(REAL_DISK, str(node.folder))
    assert found is not None and found.directory_id is not None
    return found.directory_id


def add(cluster: Cluster, node: ClusterNode) -> None:
    host, _, port = node.address.partition(":")
    address = VoterAddress("CONTROLLER", host, int(port))
    cluster.ask(lambda admin: admin.add_voter(node.id, directory_id(node), [address]))


def remove(cluster: Cluster, node: ClusterNode) -> None:
    def is_removed() -> bool:
        try:
            cluster.ask(lambda admin: admin.remove_voter(node.id, directory_id(node)))
        except KafkaError as error:
            if error.code != ErrorCode.REQUEST_TIMED_OUT:  # the change before is not committed yet
                raise
            return False
        return True

    wait_until(is_removed, what="the voter is removed")


def test_a_controller_without_a_vote_observes_and_is_added(cluster: Cluster) -> None:
    assert voters(cluster) == {101}
    node = cluster.add_controller(102).start()
    wait_until(lambda: 102 in {each.id for each in quorum(cluster).observers}, what="it observes")
    add(cluster, node)
    assert voters(cluster) == {101, 102}
    with pytest.raises(KafkaError) as refused:
        add(cluster, node)
    assert refused.value.code == ErrorCode.DUPLICATE_VOTER
    cluster.create_topic("two-voters")


def test_a_controller_may_add_itself(cluster: Cluster) -> None:
    cluster.add_controller(103, controller_quorum_auto_join_enable="true").start()
    wait_until(lambda: voters(cluster) == {101, 102, 103}, what="it has a vote")
    cluster.create_topic("three-voters")  # The leader tells of voters before their record is committed.
    cluster[101].kill()
    cluster.create_topic("without-the-first")
    assert quorum(cluster).leader_id in (102, 103)
    cluster[101].start()


def test_a_controller_whose_disk_was_lost_takes_its_own_place(cluster: Cluster) -> None:
    node = cluster[103]
    before = directory_id(node)
    node.kill()
    node.wipe()
    assert directory_id(node) != before
    node.start()

    def is_back() -> bool:
        found = {voter.id: voter.directory_id for voter in quorum(cluster).voters}
        return found.get(103) == directory_id(node)

    wait_until(is_back, what="the new disk has the vote")
    cluster.create_topic("after-the-wipe")


def test_a_voter_that_moves_tells_where_it_is(cluster: Cluster) -> None:
    from barnabas.testing.ports import free_ports

    node = cluster[102]
    node.stop()
    port = free_ports(1)[0]
    node.properties["listeners"] = f"CONTROLLER://127.0.0.1:{port}"
    node.start()
    wait_until(
        lambda: any(str(port) in each for each in quorum(cluster).endpoints.get(102, ())),
        what="the voters have its new address",
    )


def test_who_was_removed_votes_no_more_even_if_it_leads(cluster: Cluster) -> None:
    leader = cluster[quorum(cluster).leader_id]
    remove(cluster, leader)
    wait_until(lambda: quorum(cluster).leader_id not in (-1, leader.id), what="another leads")
    assert voters(cluster) == {101, 102, 103} - {leader.id}
    cluster.create_topic("without-it")
    if leader.properties.get("controller.quorum.auto.join.enable") != "true":
        add(cluster, leader)


def test_who_comes_late_fetches_a_snapshot(cluster: Cluster) -> None:
    log = Path(cluster[quorum(cluster).leader_id].folder) / "__cluster_metadata-0"

    def oldest_snapshot() -> str:
        return min((path.name for path in log.glob("*.checkpoint")), default="")

    names = iter(range(1000))

    def write_until(is_enough: Callable[[], bool]) -> None:
        def write() -> bool:
            cluster.create_topic(f"{next(names)}-{'x' * 200}", partitions=4)
            return is_enough()

        wait_until(write, 60, what=lambda: f"the oldest snapshot is {oldest_snapshot()}")

    write_until(lambda: oldest_snapshot() > f"{1:020d}")
    first = oldest_snapshot()
    # Another takes its place, and with the old one goes what of the log was before.
    write_until(lambda: oldest_snapshot() > first)
    late = cluster.add_controller(104).start()
    assert any("installed the leader's snapshot" in line for line in late.lines)
    broker = cluster[1]
    broker.kill()
    broker.wipe()
    broker.start()
    assert any("installed the leader's snapshot" in line for line in broker.lines)
    cluster.create_topic("after-the-snapshot")

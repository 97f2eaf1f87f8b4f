"""Three controllers in processes of their own: kills, stops and pauses of the active one lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client.admin.features import UpgradeType
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until

ONE_REPLICA = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, controllers=3, overrides=ONE_REPLICA) as running:
        yield running


def quorum(cluster: Cluster) -> Any:
    return cluster.ask(lambda admin: admin.describe_quorum())


def active(cluster: Cluster) -> ClusterNode:
    found: list[int] = []

    def is_led() -> bool:
        found[:] = [quorum(cluster).leader_id]
        return found[0] >= 0 and cluster[found[0]].is_running

    wait_until(is_led, what="a controller leads")
    return cluster[found[0]]


def check_topics(cluster: Cluster, wanted: set[str]) -> None:
    """Every broker hears of them; that may take as long as its next fetch."""
    for node in cluster.brokers:
        client = Producer({"bootstrap.servers": node.address})
        wait_until(
            lambda client=client: wanted <= set(client.list_topics(timeout=10).topics),  # type: ignore[misc]
            what=f"broker {node.id} knows {sorted(wanted)}",
        )


def test_all_voters_are_there_and_brokers_observe(cluster: Cluster) -> None:
    def all_fetch() -> bool:
        found = quorum(cluster)
        caught_up = all(voter.last_caught_up_timestamp > 0 for voter in found.voters)
        return caught_up and {each.id for each in found.observers} == {1, 2}

    wait_until(all_fetch, what="three voters and two observers")
    assert {voter.id for voter in quorum(cluster).voters} == {101, 102, 103}


def test_topics_are_created_again_after_a_kill_and_none_is_lost(cluster: Cluster) -> None:
    made = []
    for life in range(3):
        for number in range(5):
            made.append(f"life-{life}-{number}")
            cluster.create_topic(made[-1], partitions=2)
        killed = active(cluster)
        killed.kill()
        made.append(f"life-{life}-after")
        cluster.create_topic(made[-1], partitions=2)
        killed.start()
    check_topics(cluster, set(made))


def test_a_leader_that_stops_hands_over(cluster: Cluster) -> None:
    before = active(cluster)
    epoch = quorum(cluster).leader_epoch
    before.stop()
    cluster.create_topic("handed-over")
    after = quorum(cluster)
    assert after.leader_id != before.id
    assert after.leader_epoch > epoch
    before.start()


def test_a_leader_that_was_paused_is_fenced_by_the_epoch(cluster: Cluster) -> None:
    paused = active(cluster)
    paused.pause()
    try:
        cluster.create_topic("while-it-slept")
        assert active(cluster) is not paused
    finally:
        paused.resume()
    cluster.create_topic("when-it-woke")
    wait_until(
        lambda: any("no longer leads the quorum" in line for line in paused.lines),
        what="the paused controller learns that it does not lead",
    )
    check_topics(cluster, {"while-it-slept", "when-it-woke"})


def test_without_a_majority_nothing_is_decided_and_nothing_is_lost(cluster: Cluster) -> None:
    cluster.create_topic("before")
    leader = active(cluster)
    others = [node for node in cluster.controllers if node is not leader]
    for node in others:
        node.kill()
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce("before", b"brokers go on")
    assert producer.flush(20) == 0
    for node in others:
        node.spawn()
    for node in others:
        node.wait()
    cluster.create_topic("afterwards")
    check_topics(cluster, {"before", "afterwards"})


def test_a_static_quorum_becomes_dynamic(cluster: Cluster) -> None:
    def is_upgraded() -> bool:
        try:
            cluster.ask(lambda admin: admin.update_features({"kraft.version": 1}, UpgradeType.UPGRADE))
        except KafkaError as error:
            if error.code != ErrorCode.INVALID_UPDATE_VERSION:  # not all voters have told their directories
                raise
            return False
        return True

    wait_until(is_upgraded, what="kraft.version is 1")
    features = cluster.ask(lambda admin: admin.describe_features())
    assert features.finalized["kraft.version"] == 1
    assert all(voter.directory_id != NULL_UUID for voter in quorum(cluster).voters)
    active(cluster).kill()
    cluster.create_topic("dynamic")
    cluster.start_again()
    cluster.create_topic("all-are-back")

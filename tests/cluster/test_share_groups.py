"""Share groups on three brokers, ours or with one of Apache Kafka's, while coordinators are killed: members
stay, their partitions too, and state with share coordinators is neither lost nor left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.testing import apache
from barnabas.testing.cluster import APACHE, Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation
from clients.share_clients import Clients as JavaClients

pytestmark = pytest.mark.long

TOPIC, PARTITIONS = "shared", 4
GROUP = "sharers"
PATIENCE_S = 90.0
SETTINGS = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.share.assignment.interval.ms": 0,
}
PASSING = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # of Apache Kafka, while a share coordinator moves
}


@pytest.fixture(scope="module", params=["barnabas", "mixed"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "mixed" and (reason := apache.available()):
        pytest.skip(reason)
    cluster = Cluster(brokers=3, overrides=SETTINGS)
    if request.param == "mixed":
        cluster[2].product = APACHE
    with cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        yield cluster


class Clients:
    """Asks whichever broker coordinates the group, and again while it moves."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def coordinator(self) -> ClusterNode:
        found: list[ClusterNode] = []

        def is_known() -> bool:
            for node in self.cluster.brokers:
                if node.is_running:
                    request = FindCoordinatorRequest(coordinator_keys=[GROUP])
                    answer = self.send(node, request, 6)
                    if answer is not None and not answer.coordinators[0].error_code:
                        node = self.cluster[answer.coordinators[0].node_id]
                        if node.is_running:
                            found.append(node)
                            return True
            return False

        wait_until(is_known, PATIENCE_S, what="a coordinator is known")
        return found[-1]

    def send(self, node: ClusterNode, request: Message, version: int) -> Any:
        """The response, or None if the node does not respond."""
        port = int(node.address.rpartition(":")[2])
        try:
            with Conversation(None, port=port) as talk:  # type: ignore[arg-type]
                return talk.ask(request, version)
        except (OSError, AssertionError, ValueError):
            return None

    def ask(self, request: Message, version: int) -> Any:
        """The response of the coordinator, once there is one that does not have an error that passes."""
        found: list[Any] = []

        def has_answered() -> bool:
            answer = self.send(self.coordinator(), request, version)
            if answer is None or codes_in(answer) & PASSING:
                return False
            found.append(answer)
            return True

        wait_until(has_answered, PATIENCE_S, what=f"a response to {type(request).__name__}")
        return found[-1]

    def describe(self) -> Any:
        [group] = self.ask(ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups
        return group

    def start_offsets(self) -> list[int]:
        request = DescribeShareGroupOffsetsRequest()
        asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        topics = [
            asked.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=list(range(PARTITIONS)))
        ]
        request.groups.append(asked(group_id=GROUP, topics=topics))
        [group] = self.ask(request, 1).groups
        parts = sorted(group.topics[0].partitions, key=lambda part: part.partition_index)
        return [part.start_offset for part in parts]


def codes_in(answer: Any) -> set[ErrorCode]:
    """All errors of a response, wherever they are."""
    found = {ErrorCode(getattr(answer, "error_code", 0))}
    for name in ("groups", "results", "responses", "topics", "partitions"):
        for each in getattr(answer, name, None) or ():
            found |= codes_in(each)
    return found


class Member:
    def __init__(self, clients: Clients, member_id: str) -> None:
        self.clients = clients
        self.id = member_id
        self.epoch = 0
        self.held: set[int] = set()

    def beat(self, epoch: int | None = None) -> ErrorCode:
        epoch = self.epoch if epoch is None else epoch
        names = [TOPIC] if epoch == 0 else None
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.id, member_epoch=epoch, subscribed_topic_names=names
        )
        answer = self.clients.ask(request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.held = {
                    index for topic in answer.assignment.topic_partitions for index in topic.partitions
                }
        return ErrorCode(answer.error_code)


def settle(*members: Member) -> None:
    def is_settled() -> bool:
        codes = [member.beat() for member in members]
        assert set(codes) == {ErrorCode.NONE}, codes
        group = members[0].clients.describe()
        epochs = {group.group_epoch, group.assignment_epoch, *(member.epoch for member in members)}
        return len(epochs) == 1 and set().union(*(member.held for member in members)) == set(
            range(PARTITIONS)
        )

    wait_until(is_settled, PATIENCE_S, what="all partitions are read")


def alter(clients: Clients, offsets: Sequence[int]) -> None:
    topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    partitions = [
        topic.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in enumerate(offsets)
    ]
    request = AlterShareGroupOffsetsRequest(
        group_id=GROUP, topics=[topic(topic_name=TOPIC, partitions=partitions)]
    )
    assert codes_in(clients.ask(request, 0)) == {ErrorCode.NONE}


def test_members_keep_their_partitions_when_coordinators_die(cluster: Cluster) -> None:
    clients = Clients(cluster)
    alter(clients, range(10, 10 + PARTITIONS))
    members = [Member(clients, "a"), Member(clients, "b")]
    for _ in range(3):
        settle(*members)
        before = clients.describe()
        node = clients.coordinator()
        node.kill()
        assert [member.beat() for member in members] == [ErrorCode.NONE] * 2
        after = clients.describe()
        assert (after.group_epoch, after.group_state) == (before.group_epoch, "Stable")
        assert sorted(map(str, after.members)) == sorted(map(str, before.members))
        newcomer = Member(clients, f"c{before.group_epoch}")
        newcomer.beat()
        settle(*members, newcomer)
        assert newcomer.beat(-1) == ErrorCode.NONE
        node.start()
    assert clients.start_offsets() == [10, 11, 12, 13]
    for member in members:
        assert member.beat(-1) == ErrorCode.NONE
    deleted = clients.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert codes_in(deleted) == {ErrorCode.NONE}
    assert clients.start_offsets() == [-1] * PARTITIONS
    assert clients.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_join_survives_the_coordinator_that_answered_it(cluster: Cluster) -> None:
    clients = Clients(cluster)
    member = Member(clients, "first")
    assert member.beat() == ErrorCode.NONE
    node = clients.coordinator()
    node.kill()

    settle(member)

    node.start()
    assert member.beat(-1) == ErrorCode.NONE


@pytest.mark.java
def test_java_members_read_every_record_while_coordinators_die(cluster: Cluster) -> None:
    """A record may come twice: its acknowledgement can get lost. None is left out."""
    if reason := apache.available():
        pytest.skip(reason)
    clients = Clients(cluster)
    alter(clients, [0] * PARTITIONS)  # else members begin at the end, wherever that is when they fetch
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    written: set[str] = set()
    read: set[str] = set()

    def write() -> None:
        for number in range(len(written), len(written) + 200):
            producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
            written.add(str(number))
        assert producer.flush(60) == 0

    with JavaClients("java", cluster.bootstrap, GROUP, TOPIC) as java:
        members = [java.open(name) for name in ("ann", "bob")]

        def has_read_all() -> bool:
            for member in members:
                read.update(got.value for got in member.poll(500))
            return read >= written

        def is_stable() -> bool:
            has_read_all()
            return len([each for each in clients.describe().members if each.assignment.topic_partitions]) == 2

        wait_until(is_stable, PATIENCE_S, what="both members have partitions")
        write()
        wait_until(has_read_all, PATIENCE_S, what="all records are read")
        for _ in range(2):
            node = clients.coordinator()
            node.kill()
            write()
            wait_until(has_read_all, PATIENCE_S, what="all records are read after a kill")
            node.start()

"""Routing and retries of the core on scripted brokers: leaders move, brokers die, time ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.core.coordinators import Coordinators
from barnabas.client.core.errors import (
    BootstrapError,
    ConnectionLost,
    NoTopic,
    RequestTimeout,
    UnsupportedApi,
)
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

from .scripted import SILENCE, UNREACHABLE, ScriptedNetwork, cluster_of, metadata, run

WHERE = TopicPartition("t", 0)


class World:
    """Brokers 1 and 2 with the topic `t`; what a broker answers to ListOffsets is looked up in `offsets`."""

    def __init__(self, leader: int = 1) -> None:
        self.leader = leader
        self.offsets: dict[int, Callable[[], Any]] = {}
        answers = {
            MetadataRequest: metadata(lambda: {"t": [self.leader]}, (1, 2)),
            ListOffsetsRequest: self._list_offsets,
        }
        self.network = ScriptedNetwork({1: answers, 2: answers})

    def _list_offsets(self, request: ListOffsetsRequest, version: int) -> Any:
        port = self.network.seen[-1][0]
        answer = self.offsets.get(
            port, lambda: 42 if port == self.leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
        )()
        if answer is None or answer is SILENCE:
            return answer
        nested = ListOffsetsResponse.ListOffsetsTopicResponse
        each = nested.ListOffsetsPartitionResponse(partition_index=0)
        if isinstance(answer, ErrorCode):
            each.error_code = answer
        else:
            each.offset = answer
        return ListOffsetsResponse(topics=[nested(name="t", partitions=[each])])

    def ask(self, cluster: Any, timeout_ms: float | None = None) -> FoundOffset | KafkaError:
        question = OffsetAdmin(cluster).list_offsets({WHERE: OffsetSpec.LATEST}, timeout_ms=timeout_ms)
        return run(question)[WHERE]

    def asked(self) -> list[int]:
        return [port for port, _ in self.network.requests(ListOffsetsRequest)]


def test_a_leader_that_moved_is_found_and_asked_again() -> None:
    world = World(leader=1)
    cluster = cluster_of(world.network)
    assert world.ask(cluster) == FoundOffset(42)
    world.leader = 2
    assert world.ask(cluster) == FoundOffset(42)
    assert world.asked() == [1, 1, 2]
    assert len(world.network.requests(MetadataRequest)) == 2


def test_a_leader_that_died_in_the_middle_of_a_request_is_looked_for_again() -> None:
    world = World(leader=2)

    def die() -> None:
        world.leader = 1

    world.offsets[2] = die
    assert world.ask(cluster_of(world.network)) == FoundOffset(42)
    assert world.asked() == [2, 1]


def test_a_leader_that_cannot_be_reached_is_waited_for() -> None:
    world = World(leader=2)
    back, world.network.brokers[2] = world.network.brokers[2], UNREACHABLE
    cluster = cluster_of(world.network)

    async def sleep(seconds: float) -> None:
        world.network.clock += seconds
        world.network.pauses.append(seconds)
        if len(world.network.pauses) == 3:
            world.network.brokers[2] = back

    world.network.sleep = sleep  # type: ignore[method-assign]
    assert world.ask(cluster) == FoundOffset(42)
    assert world.network.pauses == [0.1, 0.2, 0.4]


def test_an_error_that_will_not_pass_is_told_at_once() -> None:
    world = World()
    world.offsets[1] = lambda: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    answer = world.ask(cluster_of(world.network))
    assert isinstance(answer, KafkaError) and answer.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.network.pauses == []


def test_retries_end_with_the_time_and_the_last_error() -> None:
    world = World()
    world.offsets[1] = lambda: ErrorCode.LEADER_NOT_AVAILABLE
    answer = world.ask(cluster_of(world.network), timeout_ms=2_000)
    assert isinstance(answer, KafkaError) and answer.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert world.network.pauses == [0.1, 0.2, 0.4, 0.8]  # the next pause would end after the time


def test_a_broker_that_stays_silent_is_given_up_when_the_time_is_over() -> None:
    world = World()
    world.offsets[1] = lambda: SILENCE
    with pytest.raises(RequestTimeout, match="did not answer ListOffsetsRequest within 30000 ms"):
        world.ask(cluster_of(world.network), timeout_ms=60_000)
    assert len(world.asked()) == 2


def test_a_version_that_the_broker_lacks_is_not_tried_again() -> None:
    world = World()
    del world.network.brokers[1][ListOffsetsRequest]  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedApi):
        world.ask(cluster_of(world.network))
    assert world.network.pauses == []


def test_the_next_bootstrap_server_is_tried() -> None:
    world = World()
    world.network.brokers[9] = UNREACHABLE
    run(cluster_of(world.network, 9, 1).refresh(["t"]))
    assert world.network.connected == [9, 1]


def test_wrong_addresses_are_told_at_once_unless_they_shall_be_waited_for() -> None:
    network = ScriptedNetwork({})
    cluster = cluster_of(network, 8, 9)
    with pytest.raises(BootstrapError, match=r"broker:8: connection refused; broker:9: connection refused"):
        run(cluster.retrying(cluster.refresh))
    assert network.pauses == []
    patient = cluster_of(network, 9, waits_for_bootstrap=True, api_timeout_ms=1_000)
    with pytest.raises(BootstrapError):
        run(patient.retrying(patient.refresh))
    assert network.pauses == [0.1, 0.2, 0.4]


def test_a_broken_connection_is_made_again() -> None:
    answers = iter([None, MetadataResponse(cluster_id="again")])
    network = ScriptedNetwork({1: {MetadataRequest: lambda request, version: next(answers)}})
    cluster = cluster_of(network)
    with pytest.raises(ConnectionLost):
        run(cluster.refresh())
    assert run(cluster.refresh()).cluster_id == "again"
    assert network.connected == [1, 1]


def test_a_topic_that_is_not_there_is_named() -> None:
    cluster = cluster_of(World().network)
    with pytest.raises(NoTopic, match="there is no topic nobody"):
        run(cluster.topics(["t", "nobody"]))
    assert set(run(cluster.topics(["t"]))) == {"t"} == set(run(cluster.topics(None)))


def test_a_partition_without_a_leader_says_so() -> None:
    cluster = cluster_of(World(leader=-1).network)
    with pytest.raises(KafkaError, match="partition t-0 has no leader"):
        run(cluster.leader_connection(WHERE, ""))
    with pytest.raises(KafkaError, match="partition t-7 does not exist"):
        run(cluster.leader_connection(TopicPartition("t", 7), ""))


class Group:
    """Brokers 1 and 2; `coordinator` names the one that answers for the group."""

    def __init__(self) -> None:
        self.coordinator = 1
        answers = {
            MetadataRequest: metadata(dict, (1, 2)),
            FindCoordinatorRequest: self._find,
            HeartbeatRequest: self._beat,
        }
        self.network = ScriptedNetwork({1: answers, 2: answers})
        self.cluster = cluster_of(self.network)
        self.coordinators = Coordinators(self.cluster)

    def _find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        found = [
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=self.coordinator, host="broker", port=self.coordinator
            )
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    def _beat(self, request: HeartbeatRequest, version: int) -> HeartbeatResponse:
        port = self.network.seen[-1][0]
        wrong = ErrorCode.NOT_COORDINATOR if port != self.coordinator else ErrorCode.NONE
        return HeartbeatResponse(error_code=wrong)

    def beat(self) -> str:
        async def question(node: Node) -> str:
            answer = await self.cluster.ask_node(node, HeartbeatRequest(group_id="g"), HeartbeatResponse)
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code))
            return f"from {node.id}"

        return run(self.coordinators.ask_one("g", question))


def test_a_coordinator_that_moved_is_found_and_asked_again() -> None:
    group = Group()
    assert group.beat() == "from 1" == group.beat()
    assert len(group.network.requests(FindCoordinatorRequest)) == 1
    group.coordinator = 2
    assert group.beat() == "from 2"
    assert [port for port, _ in group.network.requests(HeartbeatRequest)] == [1, 1, 1, 2]


def test_a_coordinator_that_died_is_found_elsewhere() -> None:
    group = Group()
    assert group.beat() == "from 1"
    group.network.brokers[1] = UNREACHABLE
    run(group.cluster.close())
    group.coordinator = 2
    assert group.beat() == "from 2"

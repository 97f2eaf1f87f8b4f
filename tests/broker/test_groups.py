"""Groups through the broker: the topic, the coordinator, and state that survives restarts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.coordinators.topic import java_hash, partition_for
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .conversation import Conversation

OFFSETS = "__consumer_offsets"
CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
SHARE = 2
NOT_LOADED = (
    ErrorCode.NOT_COORDINATOR,  # a broker that has just started does not lead the partition yet
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("topic", partitions=3)
        with Conversation(broker) as talk:
            find(talk, "any")
        yield broker


def find(talk: Conversation, group: str) -> None:
    """Find the coordinator, as every client does first; this creates the topic."""
    answer = talk.ask(FindCoordinatorRequest(key=group), 3)
    assert answer.error_code == ErrorCode.NONE


def commit(group: str, offset: int, partition: int = 0) -> tuple[OffsetCommitRequest, int]:
    partitions = [
        CommitTopic.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    ]
    topics = [CommitTopic(name="topic", partitions=partitions)]
    return OffsetCommitRequest(group_id=group, topics=topics), 8


def fetch(*groups: str, partition: int = 0) -> tuple[OffsetFetchRequest, int]:
    topics = [FetchGroup.OffsetFetchRequestTopics(name="topic", partition_indexes=[partition])]
    return OffsetFetchRequest(groups=[FetchGroup(group_id=group, topics=topics) for group in groups]), 8


def committed(talk: Conversation, *groups: str) -> list[int]:
    answer = talk.ask(*fetch(*groups))
    assert [group.group_id for group in answer.groups] == list(groups)
    assert {group.error_code for group in answer.groups} == {ErrorCode.NONE}
    return [group.topics[0].partitions[0].committed_offset for group in answer.groups]


def loaded(talk: Conversation, group: str) -> None:
    """Wait until the group's partition is loaded."""

    def is_loaded() -> bool:
        error: int = talk.ask(*fetch(group)).groups[0].error_code
        assert error in (ErrorCode.NONE, *NOT_LOADED)
        return error == ErrorCode.NONE

    wait_until(is_loaded)


def join(group: str, member_id: str = "") -> tuple[JoinGroupRequest, int]:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="test",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="p", metadata=b"m")],
    ), 5


def joined(talk: Conversation, group: str) -> JoinGroupResponse:
    """Join as a new member, the only one of its group."""
    promised = talk.ask(*join(group))
    assert promised.error_code == ErrorCode.MEMBER_ID_REQUIRED
    answer: JoinGroupResponse = talk.ask(*join(group, promised.member_id))
    assert answer.error_code == ErrorCode.NONE
    return answer


def sync(group: str, member: JoinGroupResponse) -> tuple[SyncGroupRequest, int]:
    assignments = [
        SyncGroupRequest.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"mine")
    ]
    return SyncGroupRequest(
        group_id=group,
        generation_id=member.generation_id,
        member_id=member.member_id,
        assignments=assignments,
    ), 3


# Which partition


def test_groups_have_the_same_partition_as_in_apache_kafka() -> None:
    assert java_hash("hello") == 99162322
    assert java_hash("\U0001f600") == 1772899
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("hello", 50) == 22
    assert partition_for("x" * 1000, 50) == abs(java_hash("x" * 1000)) % 50


@given(st.text(st.characters(max_codepoint=0x17F), max_size=200))
def test_the_fast_hash_of_ascii_equals_the_slow_one(text: str) -> None:
    slow = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        slow = 31 * slow + unit & 0xFFFF_FFFF
    assert java_hash(text) & 0xFFFF_FFFF == slow


# Finding


@pytest.mark.parametrize("version", range(7))
def test_a_coordinator_is_found_in_every_version(broker: Broker, version: int) -> None:
    with Conversation(broker) as talk:
        if version < 4:
            answer = talk.ask(FindCoordinatorRequest(key="g"), version)
            found = [answer]
        else:
            found = talk.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), version).coordinators
            assert [each.key for each in found] == ["g", "h"]
        for each in found:
            assert (each.error_code, each.node_id, each.port) == (ErrorCode.NONE, 1, broker.port)


def test_a_key_that_names_no_share_partition_has_no_coordinator(broker: Broker) -> None:
    with Conversation(broker) as talk:
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["k"])
        [answer] = talk.ask(request, 6).coordinators
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "is no share partition" in answer.error_message


def test_the_first_request_creates_the_topic(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    overrides = {"offsets.topic.num.partitions": 7, "offsets.topic.segment.bytes": 12_345_678}
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        assert not list(tmp_path.glob(f"{OFFSETS}-*"))
        talk.send((FindCoordinatorRequest(key="a"), 3), (FindCoordinatorRequest(key="b"), 3))
        assert [talk.receive().error_code for _ in range(2)] == [ErrorCode.NONE] * 2
        [topic] = talk.ask(
            MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=OFFSETS)]), 12
        ).topics
        assert topic.is_internal
        assert len(topic.partitions) == 7
        assert len(list(tmp_path.glob(f"{OFFSETS}-*"))) == 7


def test_without_its_topic_groups_have_no_coordinator(tmp_path: Path) -> None:
    overrides = {"offsets.topic.replication.factor": 3}
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        answer = talk.ask(FindCoordinatorRequest(key="g"), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        [refused] = talk.ask(*fetch("g")).groups
        assert refused.error_code == ErrorCode.NOT_COORDINATOR


# Offsets


def test_pipelined_commits_get_responses_in_order(broker: Broker) -> None:
    with Conversation(broker) as talk:
        talk.send(*[commit(f"pipelined-{number % 7}", number) for number in range(1000)])
        for _ in range(1000):
            answer = talk.receive()
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        assert committed(talk, *[f"pipelined-{number}" for number in range(7)]) == [
            max(range(number, 1000, 7)) for number in range(7)
        ]


def test_groups_of_several_shards_share_one_response(broker: Broker) -> None:
    groups = [f"shards-{number}" for number in range(20)]
    with Conversation(broker) as talk:
        for number, group in enumerate(groups):
            talk.ask(*commit(group, number))
        talk.send(commit(groups[3], 33), fetch(*groups))
        talk.receive()
        answer = talk.receive()
        offsets = [group.topics[0].partitions[0].committed_offset for group in answer.groups]
        assert offsets == [0, 1, 2, 33, *range(4, 20)]
        listed = {group.group_id for group in talk.ask(ListGroupsRequest(), 5).groups}
        assert set(groups) <= listed
        described = talk.ask(DescribeGroupsRequest(groups=[*groups, "nobody"]), 5).groups
        assert [group.group_id for group in described] == [*groups, "nobody"]
        deleted = talk.ask(DeleteGroupsRequest(groups_names=[*groups, "nobody"]), 2).results
        assert [result.group_id for result in deleted] == [*groups, "nobody"]
        assert [result.error_code for result in deleted] == [0] * 20 + [ErrorCode.GROUP_ID_NOT_FOUND]
        assert committed(talk, *groups) == [-1] * 20


def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.create_topic("topic", partitions=3)
        with Conversation(broker) as talk:
            find(talk, "g")
            for number in range(20):
                talk.ask(*commit(f"g{number}", number))
        broker.stop()
        broker.start()
        with Conversation(broker) as talk:
            for number in range(20):
                loaded(talk, f"g{number}")
            assert committed(talk, *[f"g{number}" for number in range(20)]) == list(range(20))


def test_acknowledged_offsets_survive_kill_9(tmp_path: Path) -> None:
    with Broker(tmp_path, in_process=False) as broker:
        broker.create_topic("topic", partitions=3)
        with Conversation(broker) as talk:
            find(talk, "g")
            for number in range(20):
                talk.ask(*commit(f"g{number}", number))
            broker.kill()
        broker.start()
        with Conversation(broker) as talk:
            for number in range(20):
                loaded(talk, f"g{number}")
            assert committed(talk, *[f"g{number}" for number in range(20)]) == list(range(20))


# Members


def test_a_member_stays_in_its_group_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path, overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        with Conversation(broker) as talk:
            find(talk, "g")
            member = joined(talk, "g")
            assert talk.ask(*sync("g", member)).assignment == b"mine"
        broker.stop()
        broker.start()
        with Conversation(broker) as talk:
            loaded(talk, "g")
            alive = HeartbeatRequest(
                group_id="g", generation_id=member.generation_id, member_id=member.member_id
            )
            assert talk.ask(alive, 3).error_code == ErrorCode.NONE
            assert talk.ask(*sync("g", member)).assignment == b"mine"


def test_requests_behind_a_waiting_join_wait_for_it(broker: Broker) -> None:
    with Conversation(broker) as first, Conversation(broker) as second:
        leader = joined(first, "waiting")
        first.ask(*sync("waiting", leader))
        promised = second.ask(*join("waiting"))
        second.send(join("waiting", promised.member_id), fetch("waiting"))
        again = first.ask(*join("waiting", leader.member_id))
        assert again.generation_id == leader.generation_id + 1
        assert second.receive().generation_id == again.generation_id
        assert second.receive().groups[0].group_id == "waiting"


def test_a_connection_that_closes_during_a_join_affects_no_others(broker: Broker) -> None:
    with Conversation(broker) as first:
        leader = joined(first, "closing")
        first.ask(*sync("closing", leader))
        with Conversation(broker) as second:
            promised = second.ask(*join("closing"))
            second.send(join("closing", promised.member_id))

            def is_rebalancing() -> bool:
                [group] = first.ask(DescribeGroupsRequest(groups=["closing"]), 5).groups
                return bool(group.group_state == "PreparingRebalance")

            wait_until(is_rebalancing)
        again = first.ask(*join("closing", leader.member_id))
        assert again.error_code == ErrorCode.NONE
        assert len(again.members) == 2


def test_waiting_requests_get_a_response_when_the_broker_stops(tmp_path: Path) -> None:
    overrides = {"group.initial.rebalance.delay.ms": 60_000}
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        find(talk, "g")
        promised = talk.ask(*join("g"))
        talk.send(join("g", promised.member_id))
        broker.stop()
        assert talk.receive().error_code == ErrorCode.NOT_COORDINATOR


# Metrics


def test_metrics_count_groups_and_offsets(tmp_path: Path) -> None:
    from urllib.request import urlopen

    port = free_ports(1)[0]
    overrides = {"barnabas.metrics.port": port, "group.initial.rebalance.delay.ms": 0}
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("topic", partitions=3)
        find(talk, "g")
        for group in ("a", "b"):
            talk.ask(*commit(group, 1, partition=1))
        member = joined(talk, "c")
        talk.ask(*sync("c", member))
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        shown = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        assert float(shown["kafka_coordinator_group_groupmetadatamanager_numgroups"]) == 3
        assert float(shown["kafka_coordinator_group_groupmetadatamanager_numoffsets"]) == 2
        assert float(shown["kafka_coordinator_group_groupmetadatamanager_numgroupsstable"]) == 1
        active = 'kafka_server_group_coordinator_metrics_num_partitions{state="active"}'
        assert float(shown[active]) == 50

"""Share groups behind a socket: long heartbeats and deletions, share coordinators that fail or are slow, a
feature that is off, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from barnabas.broker.shares.persister import SharePersister
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.protocol.messages.delete_share_group_state import DeleteShareGroupStateResponse
from barnabas.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .conversation import Conversation

AskedGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
OVERRIDES = {
    "offsets.topic.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.share.assignment.interval.ms": 0,
}
TOPIC = "shared"
REBALANCES = "kafka_server_group_coordinator_metrics_share_group_rebalance_count"
READY_S = 20.0
DELETED_AT_ONCE = 600  # groups: more than a shard handles in one step


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    [port] = free_ports(1)
    with Broker(overrides=OVERRIDES | {"barnabas.metrics.port": port}) as broker:
        broker.create_topic(TOPIC, 3)
        with Conversation(broker) as talk:
            find_coordinator(talk)
        yield broker


def find_coordinator(talk: Conversation) -> None:
    """Groups have a coordinator once somebody asks for it."""

    def is_found() -> bool:
        found = talk.ask(FindCoordinatorRequest(coordinator_keys=["any"]), 6).coordinators
        return not found[0].error_code

    wait_until(is_found, READY_S, what="a coordinator")


@pytest.fixture
def talk(broker: Broker) -> Iterator[Conversation]:
    with Conversation(broker) as talk:
        yield talk


def beat(talk: Conversation, group: str, epoch: int, *, joins: bool = False) -> Any:
    names = [TOPIC] if joins else None
    request = ShareGroupHeartbeatRequest(
        group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=names
    )
    return talk.ask(request, 1)


def join(talk: Conversation, group: str) -> list[int]:
    """A member that has got its partitions."""
    found: list[int] = []
    epoch = 0

    def has_partitions() -> bool:
        nonlocal epoch, found
        answer = beat(talk, group, epoch, joins=epoch == 0)
        if answer.error_code:
            return False  # the coordinator is loading
        epoch = answer.member_epoch
        if answer.assignment is not None:
            found = [each for topic in answer.assignment.topic_partitions for each in topic.partitions]
        return bool(found)

    wait_until(has_partitions, READY_S, what=f"partitions of {group}")
    return found


def leave(talk: Conversation, group: str) -> None:
    assert beat(talk, group, -1).error_code == ErrorCode.NONE


def start_offsets(talk: Conversation, group: str) -> Any:
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=None
    )
    [found] = talk.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
    assert not found.error_code
    return {part.partition_index: part.start_offset for topic in found.topics for part in topic.partitions}


def test_long_heartbeats_ask_share_coordinators_too(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.groups.share.coordinator.PARTITIONS_AT_ONCE", 0)

    assert join(talk, "long") == [0, 1, 2]
    assert start_offsets(talk, "long") == {0: -1, 1: -1, 2: -1}


def test_many_groups_are_deleted_with_the_state_of_share_groups_among_them(talk: Conversation) -> None:
    for group in ("one", "other", "busy"):
        join(talk, group)
    for group in ("one", "other"):
        leave(talk, group)
    names = [f"unknown-{number}" for number in range(DELETED_AT_ONCE)]
    names[10], names[200], names[250] = "one", "other", "busy"

    results = talk.ask(DeleteGroupsRequest(groups_names=names), 2).results
    codes = {each.group_id: ErrorCode(each.error_code) for each in results}

    assert [each.group_id for each in results] == names
    assert codes["one"] is codes["other"] is ErrorCode.NONE
    assert codes["busy"] is ErrorCode.NON_EMPTY_GROUP
    assert codes["unknown-0"] is ErrorCode.GROUP_ID_NOT_FOUND
    [group] = talk.ask(ShareGroupDescribeRequest(group_ids=["one"]), 1).groups
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert start_offsets(talk, "one") == {}


def test_a_group_stays_whose_state_cannot_be_deleted(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(talk, "kept")
    leave(talk, "kept")

    async def fail(persister: SharePersister, request: Any) -> DeleteShareGroupStateResponse:
        result = DeleteShareGroupStateResponse.DeleteStateResult
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return DeleteShareGroupStateResponse(
            results=[
                result(
                    topic_id=topic.topic_id,
                    partitions=[
                        result.PartitionResult(partition=each.partition, error_code=code)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    asked = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)
    request = DeleteShareGroupOffsetsRequest(group_id="kept", topics=[asked])
    with monkeypatch.context() as patch:
        patch.setattr(SharePersister, "delete", fail)
        [topic] = talk.ask(request, 0).responses
        [refused] = talk.ask(DeleteGroupsRequest(groups_names=["kept"]), 2).results
    [deleted] = talk.ask(DeleteGroupsRequest(groups_names=["kept"]), 2).results

    assert topic.error_code == refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert deleted.error_code == ErrorCode.NONE


def test_an_alteration_is_done_when_the_response_is_there(talk: Conversation) -> None:
    topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    part = topic.AlterShareGroupOffsetsRequestPartition(partition_index=1, start_offset=8)
    request = AlterShareGroupOffsetsRequest(
        group_id="altered", topics=[topic(topic_name=TOPIC, partitions=[part])]
    )
    response = talk.ask(request, 0)

    assert not response.error_code
    assert start_offsets(talk, "altered") == {1: 8}


def test_groups_are_counted_by_protocol_and_state(broker: Broker, talk: Conversation) -> None:
    join(talk, "counted")

    port = broker.properties["barnabas.metrics.port"]
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        text = response.read().decode()

    assert 'kafka_server_group_coordinator_metrics_group_count{protocol="share"}' in text
    stable = next(line for line in text.splitlines() if 'share_group_count{state="Stable"}' in line)
    rebalances = next(line for line in text.splitlines() if line.startswith(REBALANCES))
    assert float(stable.split()[-1]) >= 1
    assert float(rebalances.split()[-1]) >= 2


def test_everything_is_refused_while_the_feature_is_off() -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="share.version", max_version_level=0, upgrade_type=2
    )
    with Broker(overrides=OVERRIDES) as broker, Conversation(broker) as talk:
        assert not talk.ask(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code

        def is_off() -> bool:
            return bool(beat(talk, "off", 0, joins=True).error_code == ErrorCode.UNSUPPORTED_VERSION)

        wait_until(is_off, READY_S, what="the feature is off")
        off = ErrorCode.UNSUPPORTED_VERSION
        asked = AskedGroup(group_id="off")
        [described] = talk.ask(ShareGroupDescribeRequest(group_ids=["off"]), 1).groups
        [offsets] = talk.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
        altered = talk.ask(AlterShareGroupOffsetsRequest(group_id="off"), 0)
        deleted = talk.ask(DeleteShareGroupOffsetsRequest(group_id="off"), 0)
        assert {described.error_code, offsets.error_code, altered.error_code, deleted.error_code} == {off}

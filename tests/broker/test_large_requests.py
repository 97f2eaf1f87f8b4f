"""Large requests over a connection: decoded in pieces, responses in order, malformed ones refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.api.large_requests import LARGE_FRAME_BYTES
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .conversation import Conversation

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Group = OffsetFetchRequest.OffsetFetchRequestGroup
WIDTH = 500
NOTE = "n" * 120


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("wide", partitions=WIDTH)
        with Conversation(broker) as talk:
            assert talk.ask(FindCoordinatorRequest(key="g"), 3).error_code == ErrorCode.NONE
            answer = Group(group_id="g", topics=None)
            wait_until(
                lambda: not talk.ask(OffsetFetchRequest(groups=[answer]), 8).groups[0].error_code,
                what="the coordinator is ready",
            )
        yield broker


def commit(offset: int, width: int = WIDTH) -> OffsetCommitRequest:
    part = Topic.OffsetCommitRequestPartition
    partitions = [
        part(partition_index=each, committed_offset=offset, committed_metadata=NOTE) for each in range(width)
    ]
    return OffsetCommitRequest(group_id="g", topics=[Topic(name="wide", partitions=partitions)])


def fetch() -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[Group(group_id="g", topics=None)])


@pytest.mark.parametrize("version", [7, 9])
def test_large_and_small_requests_get_responses_in_order(broker: Broker, version: int) -> None:
    assert len(commit(1).encode(version)) > LARGE_FRAME_BYTES
    with Conversation(broker) as talk:
        talk.send(
            (MetadataRequest(topics=[]), 12),
            (commit(version), version),
            (fetch(), 8),
            (commit(version + 1, 1), version),
            (fetch(), 8),
        )
        talk.receive()
        first, before, second, after = (talk.receive() for _ in range(4))
    for answer in (first, second):
        assert {each.error_code for each in answer.topics[0].partitions} == {0}
    assert len(first.topics[0].partitions) == WIDTH
    found = [each.committed_offset for each in before.groups[0].topics[0].partitions]
    assert found == [version] * WIDTH
    found = [each.committed_offset for each in after.groups[0].topics[0].partitions]
    assert found == [version + 1] + [version] * (WIDTH - 1)


def test_results_of_many_names_keep_their_order(broker: Broker) -> None:
    names = [f"nobody-{number}" for number in range(5_000)]
    names[77] = "g"
    with Conversation(broker) as talk:
        talk.ask(commit(1, 1), 7)
        answer = talk.ask(DescribeGroupsRequest(groups=names), 5)
        assert [group.group_id for group in answer.groups] == names
        assert answer.groups[77].group_state == "Empty"
        groups = [Group(group_id=name, topics=None) for name in names]
        fetched = talk.ask(OffsetFetchRequest(groups=groups), 8).groups
        assert [group.group_id for group in fetched] == names
        assert [number for number, group in enumerate(fetched) if group.topics] == [77]
        assert "g" in {group.group_id for group in talk.ask(ListGroupsRequest(), 4).groups}


def test_long_responses_are_sent_in_parts(broker: Broker) -> None:
    names = [f"{number:05}-{'x' * 240}" for number in range(9_000)]
    with Conversation(broker) as talk:
        talk.send((DescribeGroupsRequest(groups=names), 5), (ListGroupsRequest(), 4))
        assert [group.group_id for group in talk.receive().groups] == names
        assert not talk.receive().error_code


def test_a_malformed_large_request_closes_the_connection(broker: Broker) -> None:
    with Conversation(broker) as talk, Conversation(broker) as other:
        request = commit(1).encode(9)
        header = b"\0\x08\0\x09\0\0\0\x01\0\x01c\0"
        frame = header + request[: len(request) // 2] + b"\xff" * 40_000
        talk._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        assert talk.is_closed()
        assert not other.ask(MetadataRequest(topics=[]), 12).topics


def test_a_client_that_disconnects_during_decoding_affects_no_others(broker: Broker) -> None:
    with Conversation(broker) as other:
        for _ in range(5):
            with Conversation(broker) as talk:
                talk.send((commit(3), 9))
        assert not other.ask(fetch(), 8).groups[0].error_code

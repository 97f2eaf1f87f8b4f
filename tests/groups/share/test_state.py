"""State of share groups with share coordinators: created, altered, deleted; failures in between."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.groups.share import calls
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

from .share_host import ShareClient, StateHost, settle

AlterTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
DeleteTopic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
RETRY_MS = 30_000


def alter_request(offsets: dict[int, int], topic: str = "t") -> AlterShareGroupOffsetsRequest:
    partitions = [
        AlterTopic.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in offsets.items()
    ]
    return AlterShareGroupOffsetsRequest(
        group_id="g", topics=[AlterTopic(topic_name=topic, partitions=partitions)]
    )


def alter(host: StateHost, offsets: dict[int, int], topic: str = "t") -> list[ErrorCode]:
    response = host.wait_for(alter_request(offsets, topic), 0)
    assert isinstance(response, AlterShareGroupOffsetsResponse)
    if response.error_code:
        return [ErrorCode(response.error_code)]
    return [ErrorCode(each.error_code) for each in response.responses[0].partitions]


def deletion(*topics: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id="g", topics=[DeleteTopic(topic_name=topic) for topic in topics]
    )


def delete_groups(host: StateHost, *names: str) -> list[ErrorCode]:
    response = host.wait_for(DeleteGroupsRequest(groups_names=list(names)), 2)
    assert isinstance(response, DeleteGroupsResponse)
    return [ErrorCode(each.error_code) for each in response.results]


def answer(host: StateHost, kind: type[Message]) -> Any:
    found = host.answers.pop("admin")
    assert isinstance(found, kind)
    return found


@pytest.fixture
def host() -> StateHost:
    return StateHost({"t": 2, "u": 1})


@pytest.fixture
def empty(host: StateHost) -> StateHost:
    """A group with state of all partitions of `t`, and without members."""
    client = ShareClient(host, "g", "a", ["t"])
    settle(host, client)
    client.leave()
    return host


def test_a_failed_initialization_is_tried_again_with_the_next_heartbeat(host: StateHost) -> None:
    client = ShareClient(host, "g", "a", ["t"])
    client.beat()
    host.respond(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    client.beat()
    assert host.respond() == 1
    client.beat()

    assert client.held == {"t": [0, 1]}


def test_share_coordinators_that_do_not_respond_are_asked_again_after_a_time(host: StateHost) -> None:
    client = ShareClient(host, "g", "a", ["t"])
    client.beat()
    host.state_calls.clear()  # lost

    host.advance(RETRY_MS - 1)
    client.beat()
    early = len(host.state_calls)
    host.advance(1)
    client.beat()

    assert (early, len(host.state_calls)) == (0, 1)


def test_a_new_coordinator_asks_at_once_for_what_the_last_one_waited_for(host: StateHost) -> None:
    client = ShareClient(host, "g", "a", ["t"])
    client.beat()
    host.state_calls.clear()

    host.restart()
    client.beat()
    host.respond()
    client.beat()

    assert client.held == {"t": [0, 1]}


def test_a_late_response_does_not_count_after_a_request_in_a_later_epoch(host: StateHost) -> None:
    """The later request may still be on its way, and it resets the state."""
    client = ShareClient(host, "g", "a", ["t"])
    client.beat()
    first, host.state_calls = host.state_calls, []
    host.advance(RETRY_MS)
    ShareClient(host, "g", "b", ["t", "u"]).beat()  # a new epoch
    later, host.state_calls = host.state_calls, first

    host.respond()
    client.beat()
    held_before = client.held
    host.state_calls = later
    host.respond()
    client.beat()

    assert held_before == {}
    assert client.held == {"t": [0]}  # the other member reads the rest


def test_a_topic_that_grows_is_initialized_further(host: StateHost) -> None:
    client = ShareClient(host, "g", "a", ["t"])
    settle(host, client)

    host.change_topics({"t": 4, "u": 1})
    client.beat()
    [call] = host.state_calls
    settle(host, client)

    assert [part.partition for topic in call.request.topics for part in topic.partitions] == [2, 3]
    assert client.held == {"t": [0, 1, 2, 3]}


def test_a_deleted_topic_is_forgotten(host: StateHost) -> None:
    client = ShareClient(host, "g", "a", ["t", "u"])
    settle(host, client)

    host.change_topics({"t": 2})
    settle(host, client)

    states = host.shard.share.state.groups["g"].states
    assert states is not None and len(states.initialized) == 1
    assert client.held == {"t": [0, 1]}


def test_altered_offsets_make_a_group_whose_members_read_on_there(host: StateHost) -> None:
    codes = alter(host, {0: 7, 5: 1})
    client = ShareClient(host, "g", "a", ["t"])
    settle(host, client)

    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert host.states == {("g", "t", 0): 7, ("g", "t", 1): -1}
    assert client.held == {"t": [0, 1]}


def test_errors_of_share_coordinators_are_told_to_the_administrator(host: StateHost) -> None:
    assert host.ask("admin", alter_request({0: 7}), 0) is None
    host.respond(ErrorCode.FENCED_STATE_EPOCH)

    [topic] = answer(host, AlterShareGroupOffsetsResponse).responses
    assert [part.error_code for part in topic.partitions] == [ErrorCode.FENCED_STATE_EPOCH]


def test_offsets_of_a_group_with_members_are_left_alone(host: StateHost) -> None:
    settle(host, ShareClient(host, "g", "a", ["t"]))
    refused = host.ask("admin", deletion("t"), 0)

    assert alter(host, {0: 7}) == [ErrorCode.NON_EMPTY_GROUP]
    assert isinstance(refused, DeleteShareGroupOffsetsResponse)
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    assert delete_groups(host, "g") == [ErrorCode.NON_EMPTY_GROUP]
    assert set(host.states.values()) == {-1}


def test_deleted_offsets_are_initialized_again_by_the_next_member(empty: StateHost) -> None:
    host = empty
    response = host.wait_for(deletion("t", "u", "missing"), 0)
    deleted = dict(host.states)
    client = ShareClient(host, "g", "a", ["t"])
    settle(host, client)

    assert isinstance(response, DeleteShareGroupOffsetsResponse)
    found = [(each.topic_name, ErrorCode(each.error_code)) for each in response.responses]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [("t", ErrorCode.NONE), ("u", unknown), ("missing", unknown)]
    assert deleted == {}
    assert client.held == {"t": [0, 1]}


def test_a_deletion_that_failed_is_tried_again(empty: StateHost) -> None:
    host = empty
    host.ask("admin", deletion("t"), 0)
    host.respond(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    [refused] = answer(host, DeleteShareGroupOffsetsResponse).responses
    left = dict(host.states)
    host.restart()
    response = host.wait_for(deletion("t"), 0)

    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert left
    assert isinstance(response, DeleteShareGroupOffsetsResponse)
    assert [each.error_code for each in response.responses] == [ErrorCode.NONE]
    assert host.states == {}


def test_a_deleted_group_leaves_no_state_behind(empty: StateHost) -> None:
    host = empty
    codes = delete_groups(host, "g", "unknown")

    assert codes == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert host.states == {}
    assert host.describe("g").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert not host.replayed().share.state.groups


def test_a_group_whose_state_could_not_be_deleted_stays(empty: StateHost) -> None:
    host = empty
    host.ask("admin", DeleteGroupsRequest(groups_names=["g"]), 2)
    host.respond(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    [result] = answer(host, DeleteGroupsResponse).results

    assert result.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.describe("g").group_state == "Empty"
    assert delete_groups(host, "g") == [ErrorCode.NONE]
    assert host.states == {}


def test_a_member_that_joins_during_the_deletion_keeps_the_group(empty: StateHost) -> None:
    host = empty
    host.ask("admin", DeleteGroupsRequest(groups_names=["g"]), 2)
    client = ShareClient(host, "g", "b", ["t"])
    client.beat()
    host.respond()
    [result] = answer(host, DeleteGroupsResponse).results
    settle(host, client)

    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    assert client.held == {"t": [0, 1]}


def test_requests_that_wait_when_the_coordinator_goes_get_an_error(empty: StateHost) -> None:
    host = empty
    host.ask("admin", deletion("t"), 0)
    host.ask("other", DeleteGroupsRequest(groups_names=["g"]), 2)

    host.restart()

    assert answer(host, DeleteShareGroupOffsetsResponse).error_code == ErrorCode.NOT_COORDINATOR
    other = host.answers["other"]
    assert isinstance(other, DeleteGroupsResponse)
    assert [each.error_code for each in other.results] == [ErrorCode.NOT_COORDINATOR]


def test_too_many_requests_that_wait_for_share_coordinators_are_refused(
    host: StateHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "CALLS_MAX", 1)
    client = ShareClient(host, "h", "a", ["t"])
    client.beat()

    refused = host.ask("admin", alter_request({0: 1}), 0)
    other = ShareClient(host, "i", "a", ["t"])
    other.beat()
    waiting = len(host.state_calls)
    settle(host, client, other)

    assert isinstance(refused, AlterShareGroupOffsetsResponse)
    assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert waiting == 1
    assert client.held == other.held == {"t": [0, 1]}

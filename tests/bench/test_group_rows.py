"""A tiny round of the rows about groups on our broker alone; the package's codecs read their frames back."""

from __future__ import annotations

import pytest
from bench.rounds import Comparison

from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from bench import group_frames as wire
from bench import loads

NAMES = ["group-join-1", "group-join-10", "group-join-100", "group-leave"]
NAMES += ["commits-pipelined", "commits-groups", "group-memory"]


def body(frame: bytes) -> bytes:
    """The body of a frame after size and header (version 1)."""
    return frame[4 + len(RequestHeader(client_id="bench").encode(1)) :]


@pytest.mark.long
def test_every_row_has_a_value() -> None:
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(NAMES)

    assert sorted(result.row.name for result in found) == sorted(NAMES)
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in found)


def test_requests_are_those_of_the_protocol() -> None:
    join = JoinGroupRequest.decode(body(wire.join("g", "m", "t")), 5)
    assert (join.group_id, join.member_id, join.protocols[0].name) == ("g", "m", "range")
    old = JoinGroupRequest.decode(body(wire.join("g", "", "t", 3)), 3)
    assert (old.protocol_type, old.protocols[0].metadata) == ("consumer", join.protocols[0].metadata)
    sync = SyncGroupRequest.decode(body(wire.sync("g", 7, "m", {"m": b"x"})), 3)
    assert (sync.generation_id, sync.assignments[0].assignment) == (7, b"x")
    beat = HeartbeatRequest.decode(body(wire.heartbeat("g", 7, "m")), 3)
    assert (beat.generation_id, beat.member_id, beat.group_instance_id) == (7, "m", None)
    commit = OffsetCommitRequest.decode(body(wire.commit("g", "t", 9)), 7)
    assert (commit.member_id, commit.topics[0].partitions[0].committed_offset) == ("", 9)
    fetch = OffsetFetchRequest.decode(body(wire.offset_fetch("g", "t", 3)), 5)
    assert fetch.topics is not None and fetch.topics[0].partition_indexes == [3]


def test_responses_are_read() -> None:
    member = JoinGroupResponse.JoinGroupResponseMember(member_id="b", metadata=b"xyz")
    answer = JoinGroupResponse(generation_id=4, protocol_name="range", leader="b", member_id="b")
    answer.members = [JoinGroupResponse.JoinGroupResponseMember(member_id="a"), member]
    for version in (3, 5):
        found = wire.joined(bytes(4) + answer.encode(version), version)
        assert (found.error, found.generation, found.member_id, found.members) == (0, 4, "b", ["a", "b"])
    part = wire.assignment("topic", 5)
    synced = wire.synced(bytes(4) + SyncGroupResponse(assignment=part).encode(3))
    assert wire.assigned_partition(synced, "topic") == 5
    topic = OffsetCommitResponse.OffsetCommitResponseTopic(name="topic")
    topic.partitions = [topic.OffsetCommitResponsePartition(error_code=12)]
    frame = bytes(8) + OffsetCommitResponse(topics=[topic]).encode(7)
    assert frame[wire.commit_error_at("topic") :][:2] == b"\0\x0c"

"""A shard passes requests to the right kind of group, and refuses unknown ones."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics.member_ids import new_member_id
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.records import Entry, encode, encode_any
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicMember, protocols_of
from barnabas.groups.classic.states import (
    CAN_REBALANCE,
    DEAD,
    MAY_FOLLOW,
    PREPARING_REBALANCE,
    ClassicGroupState,
)
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.consumer_offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.types import NULL_UUID

from .host import Host


def test_requests_of_other_kinds_are_refused() -> None:
    host = Host()
    with pytest.raises(KafkaError) as refused:
        host.shard.handle(MetadataRequest(), Caller(), EMPTY_IMAGE, 0)
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_records_of_unsupported_kinds_are_skipped() -> None:
    host = Host()
    host.shard.apply(Entry(ShareGroupMetadataKey(group_id="s"), ShareGroupMetadataValue(epoch=3)))
    answer: Any = host.ask("c", DescribeGroupsRequest(groups=["s"]), 6)
    assert answer.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_outcome_without_content_is_empty() -> None:
    assert Outcome().is_empty
    assert not Outcome(reply=HeartbeatRequest()).is_empty


def test_member_ids_look_like_those_of_kafka() -> None:
    rng = random.Random(3)
    made = {new_member_id("client", rng) for _ in range(100)}
    assert len(made) == 100
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(f"client-{uuid}", member_id) for member_id in made)


def test_states_follow_only_those_they_may_follow() -> None:
    assert set(MAY_FOLLOW) == set(ClassicGroupState)
    assert MAY_FOLLOW[DEAD] == set(ClassicGroupState)
    group = ClassicGroup("g", 0)
    with pytest.raises(AssertionError):
        group.transition(ClassicGroupState.STABLE, 1)
    assert group.state in CAN_REBALANCE
    group.transition(PREPARING_REBALANCE, 1)
    assert (group.state, group.previous_state, group.state_since_ms) == (
        PREPARING_REBALANCE,
        ClassicGroupState.EMPTY,
        1,
    )


def test_a_protocol_named_twice_counts_once() -> None:
    named = JoinGroupRequest.JoinGroupRequestProtocol
    request = JoinGroupRequest(
        protocols=[named(name="range", metadata=b"1"), named(name="range", metadata=b"2")]
    )
    assert protocols_of(request) == (("range", b"1"),)


def test_the_protocols_of_removed_members_no_longer_count() -> None:
    group = ClassicGroup("g", 0)
    for name in "ab":
        member = ClassicMember(name, None, ("c", "h"), 1, 1, (("range", b""), ("sticky", b"")))
        group.add(member, "consumer")
    assert group.supported == {"range": 2, "sticky": 2}
    group.remove("a")
    group.remove("b")
    assert group.supported == {} and group.leader is None


@given(
    group=st.text(max_size=20),
    topic=st.text(max_size=20),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=200),
    expires_ms=st.sampled_from([-1, 5]),
    topic_id=st.sampled_from([NULL_UUID, bytes(range(16))]),
)
def test_offset_records_have_one_encoding(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    epoch: int,
    metadata: str,
    expires_ms: int,
    topic_id: bytes,
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch if expires_ms == -1 else -1,
        metadata=metadata,
        commit_timestamp=7,
        expire_timestamp=expires_ms,
        topic_id=topic_id if expires_ms == -1 else NULL_UUID,
    )
    entry = Entry(OffsetCommitKey(group=group, topic=topic, partition=partition), value)
    assert encode(entry) == encode_any(entry)

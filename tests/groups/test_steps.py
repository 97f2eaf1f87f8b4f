"""Decisions in steps equal decisions at once, and no step does more than a portion."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics import steps
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.records import encode
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.offsets import offset_commit, offset_requests, transactional_commit
from barnabas.protocol import Message
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

from .host import Host, topic_id

Commit = OffsetCommitRequest.OffsetCommitRequestTopic
Fetch = OffsetFetchRequest.OffsetFetchRequestGroup
OldFetch = OffsetFetchRequest.OffsetFetchRequestTopic
Delete = OffsetDeleteRequest.OffsetDeleteRequestTopic
TxnCommit = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
TOPICS = {"a": 7, "b": 3, "c": 1}
NAMES = (*TOPICS, "unknown")


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (steps, offset_commit, offset_requests, transactional_commit):
        monkeypatch.setattr(module, "PORTION", 2)


def decided(host: Host, request: Message, version: int) -> tuple[Outcome, int]:
    """The result of the steps, and their number."""
    request = type(request).decode(request.encode(version), version)
    caller = Caller("c", "/127.0.0.1", version)
    found = host.shard.steps(request, caller, host.image, host.now_ms)
    count = 0
    while True:
        try:
            next(found)
        except StopIteration as done:
            return done.value, count
        count += 1


def numbers(rng: random.Random) -> list[int]:
    return [rng.randrange(9) for _ in range(rng.randrange(8))]


def commit(rng: random.Random, group: str, version: int) -> OffsetCommitRequest:
    topics = []
    for name in rng.choices(NAMES, k=rng.randrange(4)):
        topic = Commit(name=name, topic_id=topic_id(name)) if version >= 10 else Commit(name=name)
        for number in numbers(rng):
            metadata = rng.choice(("", None, "m", "long" * 40, "too long" * 1000))
            topic.partitions.append(
                Commit.OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=rng.randrange(1 << 40),
                    committed_leader_epoch=rng.choice((-1, 3)),
                    committed_metadata=metadata,
                )
            )
        topics.append(topic)
    epoch = rng.choice((-1, -1, -1, 5))
    retention_ms = rng.choice((-1, 1000)) if version <= 4 else -1
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id="m" if epoch > 0 else "",
        retention_time_ms=retention_ms,
        topics=topics,
    )


def any_request(rng: random.Random) -> tuple[Message, int]:
    group = rng.choice("gh")
    kind = rng.randrange(8)
    if kind == 0:
        groups = [Fetch(group_id=each, topics=rng.choice((None, []))) for each in "ghx"]
        for asked in groups:
            for name in rng.choices(NAMES, k=3) if asked.topics is not None else ():
                topic = Fetch.OffsetFetchRequestTopics(name=name, partition_indexes=numbers(rng))
                assert asked.topics is not None
                asked.topics.append(topic)
        return OffsetFetchRequest(groups=groups, require_stable=rng.random() < 0.5), 9
    if kind == 1:
        topics = [OldFetch(name=name, partition_indexes=numbers(rng)) for name in rng.choices(NAMES, k=3)]
        return OffsetFetchRequest(group_id=group, topics=rng.choice((None, topics))), 7
    if kind == 2:
        asked = Fetch(group_id=group, topics=[])
        assert asked.topics is not None
        for name in NAMES:
            topic = Fetch.OffsetFetchRequestTopics(topic_id=topic_id(name), partition_indexes=numbers(rng))
            asked.topics.append(topic)
        return OffsetFetchRequest(groups=[asked]), 10
    if kind == 3:
        deleted = [
            Delete(
                name=name,
                partitions=[
                    Delete.OffsetDeleteRequestPartition(partition_index=each) for each in numbers(rng)
                ],
            )
            for name in rng.choices(NAMES, k=2)
        ]
        return OffsetDeleteRequest(group_id=group, topics=deleted), 0
    if kind == 4:
        return DeleteGroupsRequest(groups_names=rng.choices("ghx", k=3)), 2
    if kind == 5:
        states = rng.choice(([], ["Empty"], ["Stable"]))
        return ListGroupsRequest(states_filter=states, types_filter=rng.choice(([], ["classic"]))), 5
    if kind == 6:
        return DescribeGroupsRequest(groups=rng.choices("ghx", k=4)), rng.choice((5, 6))
    return ConsumerGroupDescribeRequest(group_ids=rng.choices("ghx", k=4)), 1


@given(st.integers(0, 2**32))
def test_a_decision_in_steps_equals_the_one_at_once(seed: int) -> None:
    rng = random.Random(seed)
    host = Host(GroupSettings(initial_rebalance_delay_ms=0, record_bytes_max=5_000), TOPICS)
    if rng.random() < 0.5:
        join = ConsumerGroupHeartbeatRequest(
            group_id="h",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["a"],
            topic_partitions=[],
        )
        host.ask("m", join, 1)
    for _ in range(12):
        version = rng.choice((2, 4, 8, 9, 10))
        request, version = (commit(rng, rng.choice("gh"), version), version)
        if rng.random() < 0.4:
            request, version = any_request(rng)
        in_steps, _ = decided(host, request, version)
        at_once = host.shard.handle(
            type(request).decode(request.encode(version), version),
            Caller("c", "/127.0.0.1", version),
            host.image,
            host.now_ms,
        )
        assert in_steps.reply == at_once.reply
        assert in_steps.records == at_once.records
        assert in_steps.encoded == at_once.encoded
        for outcome in (in_steps, at_once):
            if outcome.encoded is not None:
                assert outcome.encoded == [encode(entry) for entry in outcome.records]
        host.take(in_steps)


def test_a_transactional_commit_in_steps_equals_the_one_at_once() -> None:
    host = Host(topics=TOPICS)
    part = TxnCommit.TxnOffsetCommitRequestPartition
    topics = [
        TxnCommit(name=name, partitions=[part(partition_index=each, committed_offset=7) for each in range(5)])
        for name in NAMES
    ]
    request = TxnOffsetCommitRequest(transactional_id="t", group_id="g", topics=topics)
    assert host.shard.is_long(request, host.image)
    found, count = decided(host, request, 3)
    at_once = host.shard.handle(request, Caller("c", "", 3), host.image, host.now_ms)
    assert (found.reply, found.records) == (at_once.reply, at_once.records)
    assert count > len(topics)


def test_as_many_steps_as_portions() -> None:
    host = Host(topics={"wide": 100})
    partitions = [
        Commit.OffsetCommitRequestPartition(partition_index=each, committed_offset=1) for each in range(100)
    ]
    request = OffsetCommitRequest(group_id="g", topics=[Commit(name="wide", partitions=partitions)])
    assert host.shard.is_long(request, host.image)
    outcome, count = decided(host, request, 9)
    assert count == 2 * 100 / 2  # a lookup and a write for each portion
    host.take(outcome)
    asked: Any = Fetch(group_id="g", topics=None)
    assert host.shard.is_long(OffsetFetchRequest(groups=[asked]), host.image)
    assert decided(host, OffsetFetchRequest(groups=[asked]), 9)[1] == 2 * 100 / 2
    request.topics[0].partitions = partitions[:2]
    assert not host.shard.is_long(request, host.image)


def test_records_applied_together_are_those_applied_one_by_one() -> None:
    rng = random.Random(5)
    together, single = Host(topics=TOPICS), Host(topics=TOPICS)
    for number in range(50):
        request = commit(rng, rng.choice("gh"), 9)
        if number % 10 == 9:
            outcome, _ = decided(together, DeleteGroupsRequest(groups_names=["g"]), 2)
        else:
            outcome, _ = decided(together, request, 9)
        single.take(outcome)
        together.shard.apply_all(outcome.records)
        for group in "gh":
            assert together.shard.offsets.of_group(group) == single.shard.offsets.of_group(group)
        assert together.shard.group_count == single.shard.group_count

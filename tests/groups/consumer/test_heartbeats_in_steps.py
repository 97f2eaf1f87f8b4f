"""Heartbeats of large groups in steps equal those at once, with a step for every part of the work."""

from __future__ import annotations

import random

import pytest

from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.consumer import coordinator, target
from barnabas.protocol import Message
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from ..host import Host

Owned = ConsumerGroupHeartbeatRequest.TopicPartitions
TOPICS = {"a": 40, "b": 17, "c": 3}


def in_steps(host: Host, request: Message) -> tuple[Outcome, int]:
    found = host.shard.steps(request, Caller("c", "/127.0.0.1", 1), host.image, host.now_ms)
    count = 0
    while True:
        try:
            next(found)
        except StopIteration as done:
            return done.value, count
        count += 1


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_decision_in_steps_equals_the_one_at_once(
    assignor: str, is_mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "MEMBERS_PER_STEP", 2)
    rng = random.Random(7)
    plain, stepping = Host(topics=TOPICS), Host(topics=TOPICS)
    epochs: dict[str, int] = {}
    owned: dict[str, list[Owned]] = {}
    most = 0
    for turn in range(200):
        member_id = f"m{rng.randrange(12)}"
        topics = ["a", "b", "c"][: 1 + rng.randrange(3) if is_mixed else 3]
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epochs.get(member_id, 0)
        )
        if member_id not in epochs:
            request.rebalance_timeout_ms, request.server_assignor = 60_000, assignor
            request.subscribed_topic_names, request.topic_partitions = topics, []
        elif rng.random() < 0.05:
            request.member_epoch = -1
        else:
            request.topic_partitions = owned.get(member_id, [])
        wanted = plain.shard.handle(request, Caller("c", "/127.0.0.1", 1), plain.image, plain.now_ms)
        found, count = in_steps(stepping, request)
        most = max(most, count)
        assert (found.reply, found.records) == (wanted.reply, wanted.records)
        reply = found.reply
        plain.take(wanted)
        stepping.take(found)
        epochs[member_id] = reply.member_epoch  # type: ignore[union-attr]
        if epochs[member_id] < 0:
            del epochs[member_id]
            owned.pop(member_id, None)
        elif (given := reply.assignment) is not None:  # type: ignore[union-attr]
            owned[member_id] = [
                Owned(topic_id=each.topic_id, partitions=each.partitions) for each in given.topic_partitions
            ]
        if turn % 5 == 0:
            for host in (plain, stepping):
                host.advance(1_001)
    assert most > 10


def test_large_groups_are_decided_in_steps() -> None:
    host = Host(topics={"wide": coordinator.PARTITIONS_AT_ONCE + 1, "t": 1})

    def join(member_id: str, topic: str, group: str = "g") -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            rebalance_timeout_ms=1,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )

    assert host.shard.is_long(join("m", "wide"), host.image)
    assert not host.shard.is_long(join("m", "t"), host.image)
    for number in range(coordinator.MEMBERS_AT_ONCE + 1):
        assert not host.shard.is_long(join(f"m{number}", "t"), host.image)
        host.ask("c", join(f"m{number}", "t"), 1)
    assert host.shard.is_long(join("last", "t"), host.image)
    group = host.shard.consumer.get("g")
    assert group is not None
    quiet = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m0", member_epoch=group.epoch)
    host.ask("c", join("m0", "t"), 1)
    group.metadata_is_fresh, group.assignment_epoch = True, group.epoch
    assert not host.shard.is_long(quiet, host.image)
    group.metadata_is_fresh = False
    assert host.shard.is_long(quiet, host.image)

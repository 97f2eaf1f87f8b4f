"""The index of subscribers agrees with the groups, and a changed topic reaches no other group."""

from __future__ import annotations

import random
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from ..host import Host

TOPICS = ("a", "b", "c", "d")


def some(rng: random.Random) -> frozenset[str]:
    return frozenset(rng.sample(TOPICS, rng.randrange(3)))


@given(st.integers(0, 2**32))
def test_the_index_agrees_with_the_groups(seed: int) -> None:
    rng = random.Random(seed)
    index = Subscribers()
    groups = {name: ConsumerGroup(name, index) for name in ("g", "h")}
    for _ in range(30):
        name = rng.choice(list(groups))
        group = groups[name]
        step = rng.randrange(4)
        if step == 0:
            regex = rng.choice((None, "x.*"))
            group.set_member(ConsumerMember(rng.choice("mno"), topics=some(rng), regex=regex))
        elif step == 1:
            group.remove_member(rng.choice("mno"))
        elif step == 2:
            group.set_resolved("x.*", rng.choice((None, ResolvedRegex(some(rng)))))
        elif rng.random() < 0.1:
            group.leave_index()
            groups[name] = ConsumerGroup(name, index)
        for topic in TOPICS:
            wanted = [each for each in groups.values() if each.is_subscribed(topic)]
            assert sorted(each.group_id for each in index.of(topic)) == [each.group_id for each in wanted]


class Watched(ConsumerGroup):
    """Counts how often a change of metadata reaches it."""

    __slots__ = ()
    touched: ClassVar[int] = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "metadata_is_fresh" and not value:
            Watched.touched += 1
        super().__setattr__(name, value)


def test_only_groups_that_read_a_topic_are_marked_when_it_changes() -> None:
    host = Host(topics={"a": 1, "b": 1})
    for number in range(20):
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"g{number}",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["a" if number == 7 else "b"],
            topic_partitions=[],
        )
        host.ask("m", request, 1)
    state = host.shard.consumer.state
    for group in state.groups.values():
        group.__class__ = Watched
        group.metadata_is_fresh = True
    Watched.touched = 0
    host.change_topics({"a": 2, "b": 1})
    assert Watched.touched == 1
    assert [group.group_id for group in state.groups.values() if not group.metadata_is_fresh] == ["g7"]
    host.change_topics({"a": 2, "b": 1, "c": 1})
    assert Watched.touched == 1

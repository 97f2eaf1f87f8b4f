"""Assignors of classic consumer groups: which member gets which partitions. They give Kafka's own results.

In: the members with the topics that each subscribed to, and the number of partitions of each topic. Out: the
partitions of each member. Pure. All members stop reading during a rebalance (the eager protocol).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.core.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscriber:
    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None

    @property
    def rank(self) -> tuple[bool, str]:
        """Static members come first, in the order of their names; then the others."""
        return (self.instance_id is None, self.instance_id or self.member_id)


Plan = dict[str, list[TopicPartition]]
Assignor = Callable[[Sequence[Subscriber], Mapping[str, int]], Plan]


def assign_ranges(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Plan:
    """Each topic by itself: neighbouring partitions to each member, the first members one more."""
    plan: Plan = {each.member_id: [] for each in members}
    ordered = sorted(members, key=lambda each: each.rank)
    for topic in sorted({topic for each in members for topic in each.topics}):
        subscribers = [each for each in ordered if topic in each.topics]
        count, more = divmod(partitions.get(topic, 0), len(subscribers))
        start = 0
        for index, member in enumerate(subscribers):
            end = start + count + (index < more)
            plan[member.member_id] += (TopicPartition(topic, each) for each in range(start, end))
            start = end
    return plan


def assign_in_turn(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Plan:
    """All partitions of all topics in order, one to each member in turn that subscribed to the topic."""
    plan: Plan = {each.member_id: [] for each in members}
    ordered = sorted(members, key=lambda each: each.rank)
    turn = 0
    for topic in sorted({topic for each in members for topic in each.topics}):
        for index in range(partitions.get(topic, 0)):
            while topic not in ordered[turn % len(ordered)].topics:
                turn += 1
            plan[ordered[turn % len(ordered)].member_id].append(TopicPartition(topic, index))
            turn += 1
    return plan


ASSIGNORS: dict[str, Assignor] = {"range": assign_ranges, "roundrobin": assign_in_turn}

"""The simple assignor of share groups: every partition has readers, and all members about equally many.

Members share partitions: with more members than partitions, a partition has several readers. If all members
read the same topics, all partitions are shared out together, otherwise topic by topic, as in Apache Kafka.
Members keep what they have where the balance allows it.
Does not know: racks, current readers, which partitions are initialized (`TopicSpec.assignable` says it).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from barnabas.groups.assignors.spec import Assignment, GroupSpec
from barnabas.metadata.steps import Steps, at_once

TopicPartition = tuple[bytes, int]
Held = dict[str, set[TopicPartition]]
PARTITIONS_PER_STEP = 100


class SimpleAssignor:
    name = "simple"

    def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
        return at_once(self.assign_in_steps(spec))

    def assign_in_steps(self, spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
        members = sorted(spec.members)
        held: Held = {member_id: set() for member_id in members}
        if spec.is_homogeneous():
            partitions = [each for topic_id in sorted(spec.topics) for each in assignable(spec, topic_id)]
            yield from share_out(spec, partitions, members, held)
        else:
            readers = readers_by_topic(spec, members)
            for topic_id in sorted(spec.topics):
                yield from share_out(spec, assignable(spec, topic_id), readers[topic_id], held)
        return {member_id: by_topic(found) for member_id, found in held.items()}


def assignable(spec: GroupSpec, topic_id: bytes) -> list[TopicPartition]:
    topic = spec.topics[topic_id]
    numbers = range(topic.partition_count)
    if topic.assignable is None:
        return [(topic_id, number) for number in numbers]
    return [(topic_id, number) for number in numbers if number in topic.assignable]


def readers_by_topic(spec: GroupSpec, members: Sequence[str]) -> dict[bytes, list[str]]:
    readers: dict[bytes, list[str]] = {topic_id: [] for topic_id in spec.topics}
    for member_id in members:
        for topic_id in spec.members[member_id].topic_ids:
            readers[topic_id].append(member_id)
    return readers


def share_out(
    spec: GroupSpec, partitions: Sequence[TopicPartition], members: Sequence[str], held: Held
) -> Steps[None]:
    """Add each partition to as many of the members as balance asks for."""
    if not partitions or not members:
        return
    wanted = -(-len(members) // len(partitions))  # readers of each partition
    shares = shares_of(wanted * len(partitions), len(members))
    readers: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
    unfilled: deque[tuple[str, int]] = deque()
    for member_id, share in zip(members, shares, strict=True):
        mine = held[member_id]
        kept = 0
        for partition in previous(spec, member_id):
            if kept < share and readers.get(partition, wanted) < wanted:
                mine.add(partition)
                readers[partition] += 1
                kept += 1
        if kept < share:
            unfilled.append((member_id, share - kept))
        yield
    for count, partition in enumerate(partitions, 1):
        if count % PARTITIONS_PER_STEP == 0:
            yield
        if not unfilled:
            return
        fill(partition, wanted - readers[partition], unfilled, held)


def shares_of(total: int, members: int) -> list[int]:
    """How many partitions each member reads. They add up to `total` and differ by one at most."""
    ends = [-(-total * position // members) for position in range(members + 1)]
    return [after - before for before, after in pairwise(ends)]


def previous(spec: GroupSpec, member_id: str) -> list[TopicPartition]:
    assigned = spec.members[member_id].assigned
    return [(topic_id, number) for topic_id in sorted(assigned) for number in sorted(assigned[topic_id])]


def fill(partition: TopicPartition, missing: int, unfilled: deque[tuple[str, int]], held: Held) -> None:
    """Give a partition to unfilled members in turn. Members that have it already stay unfilled."""
    for _ in range(len(unfilled)):
        if missing <= 0:
            return
        member_id, left = unfilled.popleft()
        if partition not in held[member_id]:
            held[member_id].add(partition)
            missing -= 1
            left -= 1
        if left:
            unfilled.append((member_id, left))


def by_topic(partitions: set[TopicPartition]) -> Assignment:
    grouped: dict[bytes, set[int]] = {}
    for topic_id, number in sorted(partitions):
        grouped.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in grouped.items()}

"""The uniform assignor: every member gets the same number of partitions, give or take one, and keeps its own.

If all members read the same topics, the shares are known beforehand and as few partitions move as possible:
members with more than the smaller share get the larger shares. Otherwise `balancing` evens out step by step.
Does not know: racks (Apache Kafka's does not use them either), current owners.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from barnabas.groups.assignors.balancing import balance
from barnabas.groups.assignors.spec import Assignment, GroupSpec
from barnabas.metadata.steps import Steps, at_once


class UniformAssignor:
    name = "uniform"

    def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
        return at_once(self.assign_in_steps(spec))

    def assign_in_steps(self, spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
        if not spec.members:
            return {}
        return (yield from share_equally(spec) if spec.is_homogeneous() else balance(spec))


def share_equally(spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
    """Equal shares of the same topics. A member keeps what it already has, up to its share."""
    assigned_to_any: dict[bytes, set[int]] = {topic_id: set() for topic_id in spec.topics}
    held: dict[str, list[tuple[bytes, int]]] = {}
    for member_id in sorted(spec.members):
        held[member_id] = still_valid(spec, member_id, assigned_to_any)
        yield
    total = sum(topic.partition_count for topic in spec.topics.values())
    smaller, larger_shares = divmod(total, len(spec.members))

    # Larger shares go first to members that would otherwise have to give up partitions.
    order = sorted(held, key=lambda member_id: (-len(held[member_id]), member_id))
    free: list[tuple[bytes, int]] = []
    below_share: list[tuple[str, int]] = []
    for position, member_id in enumerate(order):
        share = smaller + (position < larger_shares)
        partitions = held[member_id]
        if len(partitions) > share:
            free.extend(partitions[share:])
            del partitions[share:]
        elif len(partitions) < share:
            below_share.append((member_id, share - len(partitions)))

    yield
    free.extend(unassigned(spec, assigned_to_any))
    yield
    free.sort()
    supply = iter(free)
    for member_id, count in below_share:
        held[member_id].extend(islice(supply, count))
        yield
    assigned = {}
    for member_id, partitions in held.items():
        assigned[member_id] = by_topic(partitions)
        yield
    return assigned


def still_valid(
    spec: GroupSpec, member_id: str, assigned_to_any: dict[bytes, set[int]]
) -> list[tuple[bytes, int]]:
    """The partitions that a member may keep: it reads the topic, the partition exists, no other member has
    it."""
    member = spec.members[member_id]
    kept = []
    for topic_id in sorted(member.assigned):
        if topic_id not in member.topic_ids:
            continue
        count, of_topic = spec.topics[topic_id].partition_count, assigned_to_any[topic_id]
        for partition in sorted(member.assigned[topic_id]):
            if partition < count and partition not in of_topic:
                of_topic.add(partition)
                kept.append((topic_id, partition))
    return kept


def unassigned(spec: GroupSpec, assigned_to_any: Mapping[bytes, set[int]]) -> Iterator[tuple[bytes, int]]:
    for topic_id, topic in spec.topics.items():
        of_topic = assigned_to_any[topic_id]
        for partition in range(topic.partition_count):
            if partition not in of_topic:
                yield topic_id, partition


def by_topic(partitions: list[tuple[bytes, int]]) -> Assignment:
    grouped: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        grouped.setdefault(topic_id, []).append(partition)
    return {topic_id: frozenset(of_topic) for topic_id, of_topic in grouped.items()}

"""The simple assignor of share groups: random groups, and what must hold for all of them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from barnabas.groups.assignors.simple import SimpleAssignor
from barnabas.groups.assignors.spec import Assignment, GroupSpec, MemberSpec, TopicSpec

ASSIGNOR = SimpleAssignor()


def topic(number: int) -> bytes:
    return bytes([number]) * 16


def readers(assigned: Mapping[str, Assignment], topic_id: bytes, partition: int) -> int:
    return sum(partition in each.get(topic_id, ()) for each in assigned.values())


def sizes(assigned: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, each.values())) for each in assigned.values()]


def random_group(rng: random.Random, before: Mapping[str, Assignment]) -> GroupSpec:
    topics = {}
    for number in range(rng.randint(1, 3)):
        count = rng.randint(1, 8)
        ready = frozenset(index for index in range(count) if rng.random() < 0.9)
        topics[topic(number)] = TopicSpec(count, assignable=rng.choice((None, ready)))
    same = rng.random() < 0.5
    members = {}
    for number in range(rng.randint(1, 12)):
        subscription = frozenset(topics) if same else frozenset(id for id in topics if rng.random() < 0.7)
        name = f"m{number}"
        members[name] = MemberSpec(subscription, assigned=before.get(name, {}))
    read = frozenset().union(*(member.topic_ids for member in members.values()))
    return GroupSpec(members, {id: spec for id, spec in topics.items() if id in read})


def assignable(spec: TopicSpec) -> set[int]:
    return set(range(spec.partition_count)) if spec.assignable is None else set(spec.assignable)


@pytest.mark.parametrize("seed", range(300))
def test_every_partition_that_can_be_read_is_read_and_nobody_reads_anything_else(seed: int) -> None:
    rng = random.Random(seed)
    assigned: Mapping[str, Assignment] = {}
    for _ in range(3):
        spec = random_group(rng, assigned)
        assigned = ASSIGNOR.assign(spec)
        for topic_id, of_topic in spec.topics.items():
            for partition in range(of_topic.partition_count):
                found = readers(assigned, topic_id, partition)
                assert bool(found) == (partition in assignable(of_topic))
        for member_id, each in assigned.items():
            assert set(each) <= spec.members[member_id].topic_ids
            assert all(each.values())
        if spec.is_homogeneous() and len(set(sizes(assigned))) > 1:
            assert max(sizes(assigned)) - min(sizes(assigned)) <= 1


def test_equal_groups_get_equal_assignments_and_members_keep_their_partitions() -> None:
    def spec(before: Mapping[str, Assignment], *names: str) -> GroupSpec:
        members = {name: MemberSpec(frozenset({topic(1)}), assigned=before.get(name, {})) for name in names}
        return GroupSpec(members, {topic(1): TopicSpec(6)})

    two = ASSIGNOR.assign(spec({}, "a", "b"))
    again = ASSIGNOR.assign(spec(two, "a", "b"))
    three = ASSIGNOR.assign(spec(two, "a", "b", "c"))

    assert again == two
    for name in ("a", "b"):
        assert three[name][topic(1)] < two[name][topic(1)]
    assert sizes(three) == [2, 2, 2]

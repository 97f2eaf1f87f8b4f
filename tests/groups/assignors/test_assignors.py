"""Assignors: every partition has one subscribed member, shares are even, few partitions move."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.assignors.registry import BUILT_IN, UnknownAssignor, select_assignors
from barnabas.groups.assignors.spec import Assignment, GroupSpec, MemberSpec, TopicSpec

TOPICS = [bytes([number]) * 16 for number in range(1, 6)]


def spec(
    subscriptions: Mapping[str, frozenset[bytes]],
    counts: Mapping[bytes, int],
    assigned: Mapping[str, Assignment] | None = None,
) -> GroupSpec:
    read = frozenset[bytes]().union(*subscriptions.values())
    return GroupSpec(
        {
            member_id: MemberSpec(topic_ids, assigned=(assigned or {}).get(member_id, {}))
            for member_id, topic_ids in subscriptions.items()
        },
        {topic_id: TopicSpec(count) for topic_id, count in counts.items() if topic_id in read},
    )


def sizes(assignment: Mapping[str, Assignment]) -> dict[str, int]:
    return {member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()}


def moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """The number of partitions that remaining members lost to others."""
    return sum(
        len(partitions - after.get(member_id, {}).get(topic_id, frozenset()))
        for member_id, topics in before.items()
        if member_id in after
        for topic_id, partitions in topics.items()
    )


members = st.integers(1, 12).map(lambda count: [f"m{number:02}" for number in range(count)])
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, frozenset[bytes]], dict[bytes, int]]:
    """Members with different subscriptions to existing topics."""
    of_topics = draw(counts)
    subscription = st.sets(st.sampled_from(sorted(of_topics))).map(frozenset)
    return {member_id: draw(subscription) for member_id in draw(members)}, of_topics


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@given(group=groups())
def test_every_partition_has_exactly_one_reader_that_subscribed_to_it(
    name: str, group: tuple[dict[str, frozenset[bytes]], dict[bytes, int]]
) -> None:
    subscriptions, of_topics = group
    given_spec = spec(subscriptions, of_topics)

    assigned = BUILT_IN[name].assign(given_spec)

    readers: dict[tuple[bytes, int], str] = {}
    for member_id, topics in assigned.items():
        for topic_id, partitions in topics.items():
            assert topic_id in subscriptions[member_id]
            for partition in partitions:
                assert (topic_id, partition) not in readers
                readers[topic_id, partition] = member_id
    wanted = {
        (id, number) for id, topic in given_spec.topics.items() for number in range(topic.partition_count)
    }
    assert readers.keys() == wanted


@given(names=members, of_topics=counts)
def test_uniform_shares_differ_by_one_at_most(names: list[str], of_topics: dict[bytes, int]) -> None:
    subscriptions = {member_id: frozenset(of_topics) for member_id in names}

    shares = sizes(BUILT_IN["uniform"].assign(spec(subscriptions, of_topics))).values()

    assert max(shares) - min(shares) <= 1


@given(names=members, of_topics=counts, leaves=st.booleans())
def test_uniform_moves_no_more_than_it_must(
    names: list[str], of_topics: dict[bytes, int], leaves: bool
) -> None:
    uniform = BUILT_IN["uniform"]
    subscriptions = {member_id: frozenset(of_topics) for member_id in names}
    before = uniform.assign(spec(subscriptions, of_topics))
    if leaves and len(names) > 1:
        del subscriptions[names[0]]
    else:
        subscriptions["new"] = frozenset(of_topics)

    after = uniform.assign(spec(subscriptions, of_topics, before))

    total, size = sum(of_topics.values()), len(subscriptions)
    must_leave = 0 if leaves and len(names) > 1 else total // size
    assert moved(before, after) <= must_leave
    assert max(sizes(after).values()) - min(sizes(after).values()) <= 1


@given(group=groups())
def test_uniform_changes_nothing_when_nothing_changed(
    group: tuple[dict[str, frozenset[bytes]], dict[bytes, int]],
) -> None:
    uniform = BUILT_IN["uniform"]
    before = uniform.assign(spec(*group))

    assert uniform.assign(spec(*group, before)) == before


@given(group=groups())
def test_no_single_move_would_make_a_uniform_assignment_more_even(
    group: tuple[dict[str, frozenset[bytes]], dict[bytes, int]],
) -> None:
    subscriptions, of_topics = group
    assigned = BUILT_IN["uniform"].assign(spec(subscriptions, of_topics))
    size_of = sizes(assigned)

    for member_id, topics in assigned.items():
        for topic_id in topics:
            readers = [other for other, read in subscriptions.items() if topic_id in read]
            assert all(size_of[member_id] - size_of[other] < 2 for other in readers)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@given(group=groups())
def test_the_order_of_members_does_not_matter(
    name: str, group: tuple[dict[str, frozenset[bytes]], dict[bytes, int]]
) -> None:
    subscriptions, of_topics = group
    reversed_ = dict(reversed(subscriptions.items()))

    assigned = BUILT_IN[name].assign(spec(subscriptions, of_topics))

    assert BUILT_IN[name].assign(spec(reversed_, dict(reversed(of_topics.items())))) == assigned


def test_range_gives_runs_and_puts_static_members_first() -> None:
    topic = TOPICS[0]
    group = GroupSpec(
        {
            "a": MemberSpec(frozenset({topic})),
            "b": MemberSpec(frozenset({topic}), instance_id="z"),
            "c": MemberSpec(frozenset({topic}), instance_id="y"),
        },
        {topic: TopicSpec(7)},
    )

    assigned = BUILT_IN["range"].assign(group)

    assert assigned == {
        "c": {topic: frozenset({0, 1, 2})},
        "b": {topic: frozenset({3, 4})},
        "a": {topic: frozenset({5, 6})},
    }


def test_a_partition_that_two_members_were_given_stays_with_one_of_them() -> None:
    topic = TOPICS[0]
    both = {"a": {topic: frozenset({0, 1})}, "b": {topic: frozenset({1})}}
    subscriptions = {member_id: frozenset({topic}) for member_id in both}

    assigned = BUILT_IN["uniform"].assign(spec(subscriptions, {topic: 2}, both))

    assert sorted(partition for topics in assigned.values() for partition in topics[topic]) == [0, 1]


def test_assignors_are_chosen_by_name_or_by_the_class_that_kafka_has_for_them() -> None:
    java = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"

    assert list(select_assignors([java, "uniform"])) == ["range", "uniform"]


def test_an_assignor_of_a_plugin_is_found() -> None:
    class Nobody:
        name = "nobody"

        def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
            return {}

    assert list(select_assignors(["nobody", "range"], {"nobody": Nobody()})) == ["nobody", "range"]


def test_an_unknown_assignor_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(UnknownAssignor, match=r"names foo; known are uniform, range"):
        select_assignors(["foo"])

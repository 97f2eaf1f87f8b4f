"""Moves a member from the partitions it owns to its target: revoke first, then assign what is free.

                      target changed, partitions to revoke
        STABLE ────────────────────────────────────────────► UNREVOKED_PARTITIONS
          ▲  │ target changed, others still have some              │ member no longer owns them
          │  └───────────► UNRELEASED_PARTITIONS ◄─────────────────┤ (then on to the latest target)
          └────────────────────────┴── all of them became free ────┘

In: a member, the target, the owners of partitions. Out: the member after one step, or the same member.
Does not know: records, timers, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from barnabas.groups.assignors.spec import Assignment
from barnabas.groups.consumer.member import NOTHING, ConsumerMember, MemberState, Owned
from barnabas.protocol import ErrorCode, KafkaError

Reported = Mapping[bytes, frozenset[int]]
"""The partitions that a member reports as owned."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The assignment that a member moves towards."""

    epoch: int
    target: Assignment
    reads: Callable[[bytes], bool]  # whether the member subscribed to the topic
    owner_epoch: Callable[[bytes, int], int | None]  # the epoch of the owner of a partition


def reconcile(
    member: ConsumerMember, goal: Goal, reported: Reported | None, subscription_changed: bool
) -> ConsumerMember:
    """One step towards the goal. `reported` is None if the member did not report what it owns."""
    state = member.state
    if state is MemberState.STABLE:
        if member.epoch != goal.epoch:
            return advance(member, member.epoch, goal, reported)
        return drop_unsubscribed(member, goal, reported) if subscription_changed else member
    if state is MemberState.UNREVOKED_PARTITIONS:
        if owns_any(reported, member.revoking):
            return drop_unsubscribed(member, goal, reported) if subscription_changed else member
        return advance(member, member.epoch, goal, reported)
    if state is MemberState.UNRELEASED_PARTITIONS:
        return advance(member, member.epoch, goal, reported)
    if reported is None or reported:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions "
            "and rejoin.",
        )
    return advance(member, goal.epoch, goal, reported)


def advance(member: ConsumerMember, epoch: int, goal: Goal, reported: Reported | None) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    lost: dict[bytes, dict[int, int]] = {}
    taken: dict[bytes, list[int]] = {}
    is_waiting = False
    for topic_id in sorted({*goal.target, *member.assigned}):
        target = goal.target.get(topic_id, frozenset()) if goal.reads(topic_id) else frozenset()
        held = member.assigned.get(topic_id, {})
        split(topic_id, held, target, kept, lost)
        leaving = member.revoking.get(topic_id, {})
        for partition in sorted(target.difference(held)):
            if goal.owner_epoch(topic_id, partition) is None or partition in leaving:
                taken.setdefault(topic_id, []).append(partition)
            else:
                is_waiting = True

    if lost and owns_any(reported, lost):
        return member.moved_to(epoch, MemberState.UNREVOKED_PARTITIONS, kept, lost)
    for topic_id, partitions in taken.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, goal.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return member.moved_to(goal.epoch, state, kept, NOTHING)


def split(
    topic_id: bytes,
    held: Mapping[int, int],
    target: frozenset[int],
    kept: dict[bytes, dict[int, int]],
    lost: dict[bytes, dict[int, int]],
) -> None:
    """Split a member's partitions of a topic into those that stay and those to revoke."""
    for partition, since in held.items():
        side = kept if partition in target else lost
        side.setdefault(topic_id, {})[partition] = since


def drop_unsubscribed(member: ConsumerMember, goal: Goal, reported: Reported | None) -> ConsumerMember:
    """Revoke topics that the member no longer subscribes to, without waiting for a new target."""
    kept = {topic_id: held for topic_id, held in member.assigned.items() if goal.reads(topic_id)}
    if len(kept) == len(member.assigned):
        return member
    lost: dict[bytes, Mapping[int, int]] = dict(member.revoking)
    for topic_id, held in member.assigned.items():
        if topic_id not in kept:
            lost[topic_id] = {**lost.get(topic_id, {}), **held}
    if owns_any(reported, lost):
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, lost)
    return member.moved_to(member.epoch, member.state, kept, member.revoking)


def owns_any(reported: Reported | None, partitions: Owned) -> bool:
    """Whether a member reports that it owns some of these partitions, or reports nothing."""
    if reported is None:
        return True
    return any(not of_topic.isdisjoint(reported.get(id, ())) for id, of_topic in keys(partitions))


def keys(partitions: Owned) -> Iterable[tuple[bytes, frozenset[int]]]:
    return ((topic_id, frozenset(numbers)) for topic_id, numbers in partitions.items())

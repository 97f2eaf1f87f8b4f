"""Moves a member from the tasks it runs to its target: revoke first, then assign what is free.

                      target changed, tasks to revoke
        STABLE ───────────────────────────────────────► UNREVOKED_TASKS
          ▲  │ target changed, others still run some            │ member no longer runs them
          │  └───────────► UNRELEASED_TASKS ◄───────────────────┤ (then on to the latest target)
          └────────────────────────┴── all of them became free ─┘

An active task is free when no process runs it, and this process runs no standby or warm-up of it. A standby
or warm-up task is free when this process does not run the task in any role.
In: a member, the target, the processes that run tasks. Out: the member after one step, or the same member.
Does not know: records, timers, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.groups.streams.member import MemberState, StreamsMember
from barnabas.groups.streams.tasks import HeldTasks, Tasks, TaskSets
from barnabas.protocol import ErrorCode, KafkaError

IsTaken = Callable[[str, int], bool]


@dataclass(frozen=True, slots=True)
class Goal:
    """The assignment that a member moves towards."""

    epoch: int
    target: Tasks
    is_active_anywhere: IsTaken
    is_active_here: IsTaken  # in the process of the member
    is_copied_here: IsTaken  # a standby or warm-up task, in the process of the member


def reconcile(member: StreamsMember, goal: Goal, reported: Tasks | None) -> StreamsMember:
    """One step towards the goal. `reported` is None if the member did not report what it runs."""
    state = member.state
    if state is MemberState.STABLE:
        return member if member.epoch == goal.epoch else advance(member, member.epoch, goal, reported)
    if state is MemberState.UNREVOKED_TASKS:
        if reported is None or reported.has_any_of(member.revoking):
            return member
        return advance(member, member.epoch + 1, goal, reported)
    if state is MemberState.UNRELEASED_TASKS:
        return advance(member, member.epoch, goal, reported)
    if reported is None or reported:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and "
            "rejoin.",
        )
    return advance(member, goal.epoch, goal, reported)


def advance(member: StreamsMember, epoch: int, goal: Goal, reported: Tasks | None) -> StreamsMember:
    def is_taken(subtopology: str, partition: int) -> bool:
        return goal.is_active_anywhere(subtopology, partition) or goal.is_copied_here(subtopology, partition)

    def runs_here(subtopology: str, partition: int) -> bool:
        return goal.is_active_here(subtopology, partition) or goal.is_copied_here(subtopology, partition)

    held, target = member.assigned, goal.target
    active = {name: frozenset(epochs) for name, epochs in held.active.items()}
    main = split(active, target.active, is_taken)
    standby = split(held.standby, target.standby, runs_here)
    warmup = split(held.warmup, target.warmup, runs_here)

    def of_epochs(tasks: TaskSets) -> dict[str, dict[int, int]]:
        return {name: {number: held.active[name][number] for number in tasks[name]} for name in tasks}

    still = HeldTasks(of_epochs(main.kept), standby.kept, warmup.kept)
    revoking = HeldTasks(of_epochs(main.lost), standby.lost, warmup.lost)
    if revoking and (reported is None or reported.has_any_of(revoking)):
        return member.moved_to(epoch, MemberState.UNREVOKED_TASKS, still, revoking)
    new = {name: dict.fromkeys(sorted(numbers), goal.epoch) for name, numbers in main.taken.items()}
    assigned = HeldTasks(
        added(still.active, new),
        united(standby.kept, standby.taken),
        united(warmup.kept, warmup.taken),
    )
    waits = main.is_waiting or standby.is_waiting or warmup.is_waiting
    state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
    return member.moved_to(goal.epoch, state, assigned)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between what a member runs and should run, in one role."""

    kept: TaskSets
    lost: TaskSets
    taken: TaskSets
    is_waiting: bool  # for tasks that are not free


def split(held: TaskSets, target: TaskSets, is_taken: IsTaken) -> Difference:
    kept: dict[str, frozenset[int]] = {}
    lost: dict[str, frozenset[int]] = {}
    taken: dict[str, frozenset[int]] = {}
    is_waiting = False
    for name in sorted({*held, *target}):
        has, wants = held.get(name, frozenset()), target.get(name, frozenset())
        free = frozenset(number for number in wants - has if not is_taken(name, number))
        is_waiting = is_waiting or len(free) < len(wants - has)
        for side, numbers in ((kept, has & wants), (lost, has - wants), (taken, free)):
            if numbers:
                side[name] = numbers
    return Difference(kept, lost, taken, is_waiting)


def added(
    some: Mapping[str, Mapping[int, int]], more: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, int]]:
    return {name: {**some.get(name, {}), **more.get(name, {})} for name in sorted({*some, *more})}


def united(some: TaskSets, more: TaskSets) -> dict[str, frozenset[int]]:
    return {
        name: some.get(name, frozenset()) | more.get(name, frozenset()) for name in sorted({*some, *more})
    }

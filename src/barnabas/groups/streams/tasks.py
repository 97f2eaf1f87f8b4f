"""Tasks: pairs of subtopology and partition that members run as active, standby or warm-up tasks.

Immutable values. A member's active tasks have the epochs in which they were assigned, so that commits with an
older epoch can be checked (KIP-1251).
Does not know: members, topologies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

TaskSets = Mapping[str, frozenset[int]]
"""Subtopology id -> partitions."""
TaskEpochs = Mapping[str, Mapping[int, int]]
"""Subtopology id -> partition -> the epoch of its assignment."""


class TaskIds(Protocol):
    """The tasks of one subtopology in a request or record."""

    subtopology_id: str
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks that a member should run, or reports to run."""

    active: TaskSets = field(default_factory=dict)
    standby: TaskSets = field(default_factory=dict)
    warmup: TaskSets = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def has_any_of(self, held: HeldTasks) -> bool:
        return (
            overlaps(self.active, held.active)
            or overlaps(self.standby, held.standby)
            or overlaps(self.warmup, held.warmup)
        )

    def is_part_of(self, held: HeldTasks) -> bool:
        """Whether there is nothing here beyond the held tasks."""
        return (
            is_part(self.active, held.active)
            and is_part(self.standby, held.standby)
            and is_part(self.warmup, held.warmup)
        )

    def is_same_as(self, held: HeldTasks) -> bool:
        return self.is_part_of(held) and (
            sum(map(len, self.active.values())) == sum(map(len, held.active.values()))
            and sum(map(len, self.standby.values())) == sum(map(len, held.standby.values()))
            and sum(map(len, self.warmup.values())) == sum(map(len, held.warmup.values()))
        )


@dataclass(frozen=True, slots=True)
class HeldTasks:
    """The tasks that a member was assigned, or has to revoke."""

    active: TaskEpochs = field(default_factory=dict)
    standby: TaskSets = field(default_factory=dict)
    warmup: TaskSets = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TASKS = Tasks()
NOTHING_HELD = HeldTasks()


def task_sets(tasks: Iterable[TaskIds] | None) -> TaskSets:
    """The tasks of a request or record. A subtopology that is named twice counts once, as a whole."""
    found: dict[str, frozenset[int]] = {}
    for of_subtopology in tasks or ():
        known = found.get(of_subtopology.subtopology_id, frozenset())
        found[of_subtopology.subtopology_id] = known.union(of_subtopology.partitions)
    return found


def overlaps(some: TaskSets, held: Mapping[str, Iterable[int]]) -> bool:
    return any(not numbers.isdisjoint(held.get(subtopology, ())) for subtopology, numbers in some.items())


def is_part(some: TaskSets, held: Mapping[str, Iterable[int]]) -> bool:
    return all(
        subtopology in held and numbers <= frozenset(held[subtopology])
        for subtopology, numbers in some.items()
    )

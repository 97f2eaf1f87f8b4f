"""One streams group as its records define it: epochs, topology, members, target assignment.

In: members and other facts, as `replay` reads them from records. Out: lookups for decisions: which processes
run a task, the state of the group. Every change updates the indexes.
Does not know: time, metadata, requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from barnabas.groups.basics.subscribers import Subscribers
from barnabas.groups.streams.configuring import ConfiguredTopology
from barnabas.groups.streams.member import StreamsMember
from barnabas.groups.streams.tasks import NO_TASKS, HeldTasks, Tasks, TaskSets
from barnabas.groups.streams.topology import StreamsTopology

FIRST_EPOCH = 1  # of a group without members; the first member makes it 2

Runners = dict[str, dict[int, set[str]]]
"""Subtopology -> partition -> ids of the processes that run a copy of the task."""


class StreamsGroupState(StrEnum):
    EMPTY = "Empty"
    NOT_READY = "NotReady"  # topics are missing or do not fit
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsGroup:
    __slots__ = (
        "_active",
        "_assignment_epoch",
        "_copies",
        "_reconciled_count",
        "_subscribers",
        "assignment_configs",
        "assignment_timestamp_ms",
        "configured",
        "endpoint_epoch",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "metadata_is_fresh",
        "shutdown_member_id",
        "target",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str, subscribers: Subscribers[StreamsGroup] | None = None) -> None:
        """`subscribers` is the index of the shard; a group outside the shard has none."""
        self._subscribers = subscribers
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: dict[str, str] = {}  # with which the last epoch was computed
        self._assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self._reconciled_count = 0  # members reconciled to the assignment epoch
        self.topology: StreamsTopology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, Tasks] = {}
        self._active: dict[str, dict[int, str]] = {}  # subtopology -> partition -> process
        self._copies: tuple[Runners, Runners] = ({}, {})  # of standby and of warm-up tasks
        # Not recorded:
        self.configured: ConfiguredTopology | None = None
        self.metadata_is_fresh = False  # the hash was compared since topics last changed
        self.endpoint_epoch = 0  # grows when the tasks of members with endpoints change
        self.shutdown_member_id: str | None = None  # the member that asked to stop the application

    # Lookups

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self._assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if self._reconciled_count == len(self.members):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def assignment_epoch(self) -> int:
        return self._assignment_epoch

    @assignment_epoch.setter
    def assignment_epoch(self, epoch: int) -> None:
        self._assignment_epoch = epoch
        self._reconciled_count = sum(member.is_reconciled_to(epoch) for member in self.members.values())

    def target_of(self, member_id: str) -> Tasks:
        return self.target.get(member_id, NO_TASKS)

    def active_process(self, subtopology: str, partition: int) -> str | None:
        """The process that runs an active task or still has to revoke it; None if it is free."""
        return self._active.get(subtopology, {}).get(partition)

    def is_copied_at(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Whether the process runs a standby or warm-up of the task, or still has to revoke it."""
        return any(process_id in of.get(subtopology, {}).get(partition, ()) for of in self._copies)

    def is_subscribed(self, topic: str) -> bool:
        """A group without members reads nothing, so that its offsets can expire."""
        return bool(self.members) and self.topology is not None and topic in self.topology.sources

    # Changes

    def set_member(self, member: StreamsMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._reconciled_count += member.is_reconciled_to(self._assignment_epoch)
        if before is not None:
            self._reconciled_count -= before.is_reconciled_to(self._assignment_epoch)
            self._stop(before)
        self._run(member.assigned, member.process_id)
        self._run(member.revoking, member.process_id)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._reconciled_count -= member.is_reconciled_to(self._assignment_epoch)
        self._stop(member)
        if not self.members:
            self.shutdown_member_id = None

    def set_topology(self, topology: StreamsTopology | None) -> None:
        before, self.topology = self.topology, topology
        index = self._subscribers
        if index is None:
            return
        names = frozenset() if topology is None else topology.required_topics
        former = frozenset() if before is None else before.required_topics
        for name in former - names:
            index.remove(name, self)
        for name in names - former:
            index.add(name, self)

    def leave_index(self) -> None:
        """Remove the group from its shard's index."""
        self.set_topology(None)
        self._subscribers = None

    def _run(self, tasks: HeldTasks, process_id: str) -> None:
        for subtopology, numbers in tasks.active.items():
            self._active.setdefault(subtopology, {}).update(dict.fromkeys(numbers, process_id))
        for copies, sets in zip(self._copies, (tasks.standby, tasks.warmup), strict=True):
            for subtopology, partition in each_task(sets):
                copies.setdefault(subtopology, {}).setdefault(partition, set()).add(process_id)

    def _stop(self, member: StreamsMember) -> None:
        process_id = member.process_id
        for tasks in (member.assigned, member.revoking):
            for subtopology, numbers in tasks.active.items():
                running = self._active.get(subtopology, {})
                for number in numbers:
                    if running.get(number) == process_id:
                        del running[number]
            for copies, sets in zip(self._copies, (tasks.standby, tasks.warmup), strict=True):
                for subtopology, partition in each_task(sets):
                    copies.get(subtopology, {}).get(partition, set()).discard(process_id)


def each_task(sets: TaskSets) -> Iterable[tuple[str, int]]:
    return ((subtopology, number) for subtopology, numbers in sets.items() for number in numbers)

"""The sticky assignor: members keep their tasks where that is balanced, and standbys become active tasks.

In: members with their previous targets and processes, the tasks, the number of standbys. Out: active and
standby tasks of every member; ties break as in Apache Kafka's assignor (`java_order`). A standby never runs
in the process of its active task. Apache Kafka 4.3 assigns no warm-up tasks.
Does not know: topics, epochs, records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.groups.streams.java_order import PriorityQueue, hash_order
from barnabas.groups.streams.tasks import NO_TASKS, Tasks, TaskSets
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError

TASKS_PER_STEP = 100


class TaskId(NamedTuple):
    subtopology: str
    partition: int


class SubtopologySpec(NamedTuple):
    name: str
    task_count: int
    is_stateful: bool


@dataclass(frozen=True, slots=True)
class MemberSpec:
    process_id: str
    previous: Tasks = NO_TASKS


class Member(NamedTuple):
    process_id: str
    member_id: str


@dataclass(slots=True)
class Process:
    """The members of one process, and what they got so far."""

    counts: dict[str, int] = field(default_factory=dict)  # tasks by member
    tasks: set[TaskId] = field(default_factory=set)
    active: dict[str, list[TaskId]] = field(default_factory=dict)
    standby: dict[str, list[TaskId]] = field(default_factory=dict)
    load: float = 0.0
    _task_count: int = 0
    _by_load: PriorityQueue[list[object]] | None = None

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Assign a task; returns the number of tasks that the member has now."""
        self._by_load = None  # its order is not valid any more
        return self._add(member_id, task, is_active=is_active)

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self._task_count += 1
        self.tasks.add(task)
        side = self.active if is_active else self.standby
        side.setdefault(member_id, []).append(task)
        self.counts[member_id] += 1
        self.load = self._task_count / len(self.counts)
        return self.counts[member_id]

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active=is_active)
        queue = self._by_load
        if queue is None:
            entries: list[list[object]] = [[name, self.counts[name]] for name in hash_order(self.counts)]
            queue = self._by_load = PriorityQueue(entries, lambda entry: entry[1])  # type: ignore[arg-type, return-value]
        entry = queue.pop()
        count = self._add(str(entry[0]), task, is_active=is_active)
        entry[1] = count
        queue.add(entry)
        return count


class Quota:
    """How many tasks a member may keep. A member that reaches the quota leaves the calculation, so that
    the quota of the others follows from what is left."""

    __slots__ = ("_member_count", "_task_count", "each")

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count = task_count
        self._member_count = member_count
        self.each = self._share()

    def count(self, tasks_of_member: int) -> None:
        if tasks_of_member == self.each:
            self._member_count -= 1
            self._task_count -= tasks_of_member
            self.each = self._share()

    def _share(self) -> int:
        return -(-self._task_count // self._member_count) if self._member_count else 0


class Assignment:
    """One computation."""

    def __init__(
        self, members: Mapping[str, MemberSpec], subtopologies: Sequence[SubtopologySpec], standby_count: int
    ) -> None:
        self._subtopologies = subtopologies
        self._standby_count = standby_count
        active_count = sum(each.task_count for each in subtopologies)
        stateful_count = sum(each.task_count for each in subtopologies if each.is_stateful)
        self._active_quota = Quota(active_count, len(members))
        self._total_quota = Quota(active_count + stateful_count * standby_count, len(members))
        self._had_active: dict[TaskId, Member] = {}
        self._had_standby: dict[TaskId, list[Member]] = {}
        self._members = {member_id: members[member_id] for member_id in hash_order(members)}
        self._processes: dict[str, Process] = {}

    def compute(self) -> Steps[dict[str, Tasks]]:
        yield from self._look_back()
        yield from self._assign_active()
        if self._standby_count:
            yield from self._assign_standbys()
        found = {}
        for member_id, spec in self._members.items():
            process = self._processes[spec.process_id]
            active = as_sets(process.active.get(member_id, ()))
            yield
            found[member_id] = Tasks(active, as_sets(process.standby.get(member_id, ())))
            yield
        return found

    def _look_back(self) -> Steps[None]:
        """Find which members had which tasks."""
        processes: dict[str, Process] = {}
        count = 0
        for member_id, spec in self._members.items():
            processes.setdefault(spec.process_id, Process()).add_member(member_id)
            member = Member(spec.process_id, member_id)
            for task in tasks_in(spec.previous.active):
                self._had_active[task] = member
                count += 1
                if count % TASKS_PER_STEP == 0:
                    yield
            for task in tasks_in(spec.previous.standby):
                self._had_standby.setdefault(task, []).append(member)
                count += 1
                if count % TASKS_PER_STEP == 0:
                    yield
        order = hash_order(processes, len(self._members))
        self._processes = {process_id: processes[process_id] for process_id in order}
        yield

    def _assign_active(self) -> Steps[None]:
        tasks = tasks_of(self._subtopologies)
        yield
        tasks.sort(key=by_partition)
        yield
        left = []
        for count, task in enumerate(tasks, 1):
            member = self._had_active.get(task)
            if member is None or not self._keep_active(member, task):
                left.append(task)
            if count % TASKS_PER_STEP == 0:
                yield
        tasks, left = left, []
        for count, task in enumerate(tasks, 1):
            member = self._least_loaded(self._had_standby.get(task, ()), None)
            if member is None or not self._keep_active(member, task):
                left.append(task)
            if count % TASKS_PER_STEP == 0:
                yield
        left.sort()
        yield
        if left and not self._processes:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"No process available to assign active task {left[0]}."
            )
        queue = PriorityQueue(self._processes.values(), lambda process: process.load)
        for count, task in enumerate(left, 1):
            process = queue.pop()
            self._count_active(process.add_to_least_loaded(task, is_active=True))
            queue.add(process)
            if count % TASKS_PER_STEP == 0:
                yield

    def _keep_active(self, member: Member, task: TaskId) -> bool:
        process = self._processes[member.process_id]
        if process.counts[member.member_id] >= self._active_quota.each:
            return False
        self._count_active(process.add(member.member_id, task, is_active=True))
        return True

    def _count_active(self, tasks_of_member: int) -> None:
        self._active_quota.count(tasks_of_member)
        self._total_quota.count(tasks_of_member)

    def _assign_standbys(self) -> Steps[None]:
        tasks = tasks_of(each for each in self._subtopologies if each.is_stateful)
        tasks.sort(key=by_partition, reverse=True)
        left: list[tuple[TaskId, int]] = []  # with the number of standbys that are missing
        for count, task in enumerate(tasks, 1):
            for done in range(self._standby_count):
                if not self._keep_standby(task):
                    left.append((task, self._standby_count - done))
                    break
            if count % TASKS_PER_STEP == 0:
                yield
        left.sort(key=lambda each: each[0], reverse=True)
        queue = PriorityQueue(self._processes.values(), lambda process: process.load)
        for count, (task, missing) in enumerate(left, 1):
            for _ in range(missing):
                if not self._add_standby(queue, task):
                    break  # there are too few processes
            if count % TASKS_PER_STEP == 0:
                yield

    def _keep_standby(self, task: TaskId) -> bool:
        """Assign a standby to a member that had the task before: as active, or as standby."""
        member = self._had_active.get(task)
        if member is not None and self._keep_standby_at(member, task):
            return True
        member = self._least_loaded(self._had_standby.get(task, ()), task)
        return member is not None and self._keep_standby_at(member, task)

    def _keep_standby_at(self, member: Member, task: TaskId) -> bool:
        process = self._processes[member.process_id]
        if task in process.tasks or process.counts[member.member_id] >= self._total_quota.each:
            return False
        self._total_quota.count(process.add(member.member_id, task, is_active=False))
        return True

    def _add_standby(self, queue: PriorityQueue[Process], task: TaskId) -> bool:
        """Assign a standby to the least loaded process that does not run the task."""
        passed = []
        is_found = False
        while len(queue):
            process = queue.pop()
            passed.append(process)
            if task not in process.tasks:
                self._total_quota.count(process.add_to_least_loaded(task, is_active=False))
                is_found = True
                break
        for process in reversed(passed):
            queue.add(process)
        return is_found

    def _least_loaded(self, members: Sequence[Member], task: TaskId | None) -> Member | None:
        """The least loaded member; with a task only if the first member's process does not run it, as in
        Apache Kafka."""
        if not members:
            return None
        found = members[0]
        first = self._processes[found.process_id]
        process_load, member_load = first.load, first.counts[found.member_id]
        for member in members[1:]:
            process = self._processes[member.process_id]
            if process.load < process_load and (task is None or task not in process.tasks):
                count = process.counts[member.member_id]
                if count < member_load:
                    found, process_load, member_load = member, process.load, count
        return found if task is None or task not in first.tasks else None


def tasks_of(subtopologies: Iterable[SubtopologySpec]) -> list[TaskId]:
    return [TaskId(each.name, number) for each in subtopologies for number in range(each.task_count)]


def tasks_in(sets: TaskSets) -> Iterator[TaskId]:
    return (TaskId(subtopology, number) for subtopology, numbers in sets.items() for number in numbers)


def by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology


def as_sets(tasks: Sequence[TaskId]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for task in tasks:
        found.setdefault(task.subtopology, set()).add(task.partition)
    return {subtopology: frozenset(found[subtopology]) for subtopology in sorted(found)}

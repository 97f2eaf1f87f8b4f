"""The sticky assignor of tasks: balanced and sticky, as Apache Kafka's."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from barnabas.groups.streams.assignor import Assignment, MemberSpec, SubtopologySpec
from barnabas.groups.streams.java_order import PriorityQueue, hash_order, string_hash
from barnabas.groups.streams.tasks import NO_TASKS, Tasks, TaskSets
from barnabas.metadata.steps import at_once
from barnabas.testing import apache

Members = dict[str, MemberSpec]
HERE = Path(__file__).parent
PROBLEMS = 100


def assign(members: Members, subtopologies: list[SubtopologySpec], standbys: int = 0) -> dict[str, Tasks]:
    return at_once(Assignment(members, subtopologies, standbys).compute())


def names(tasks: TaskSets) -> list[str]:
    return [f"{name}_{number}" for name in sorted(tasks) for number in sorted(tasks[name])]


class Problem:
    """Members come and go, and each gets an assignment from the one before."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        count = self.rng.randint(1, 4)
        self.subtopologies = [
            SubtopologySpec(str(number), self.rng.randint(1, 9), self.rng.random() < 0.6)
            for number in range(count)
        ]
        self.standbys = self.rng.choice((0, 0, 1, 2))
        self.members: Members = {}
        self.made = 0
        for _ in range(self.rng.randint(1, 6)):
            self.add()

    def add(self) -> None:
        self.made += 1
        name = f"{self.rng.getrandbits(64):x}-{self.made}"
        self.members[name] = MemberSpec(f"process-{self.rng.randint(1, 4)}")

    def change(self) -> None:
        if self.rng.random() < 0.5 and len(self.members) > 1:
            del self.members[self.rng.choice(sorted(self.members))]
        else:
            self.add()
        if self.rng.random() < 0.2:
            self.standbys = self.rng.choice((0, 1, 2))

    def adopt(self, found: dict[str, Tasks]) -> None:
        self.members = {
            name: MemberSpec(spec.process_id, found.get(name, NO_TASKS))
            for name, spec in self.members.items()
        }

    def line(self) -> str:
        """The problem for `JavaAssignor`."""
        subtopologies = ",".join(
            f"{each.name}:{each.task_count}:{int(each.is_stateful)}" for each in self.subtopologies
        )
        members = ",".join(
            f"{name}:{spec.process_id}:{' '.join(names(spec.previous.active))}:"
            f"{' '.join(names(spec.previous.standby))}"
            for name, spec in self.members.items()
        )
        return f"{self.standbys};{subtopologies};{members}"


def shown(found: dict[str, Tasks]) -> str:
    return "".join(
        f"{name}:{' '.join(names(found[name].active))}:{' '.join(names(found[name].standby))},"
        for name in sorted(found)
    )


@pytest.mark.parametrize("seed", range(20))
def test_every_task_runs_once_and_standbys_run_in_other_processes(seed: int) -> None:
    problem = Problem(seed)
    for _ in range(8):
        found = assign(problem.members, problem.subtopologies, problem.standbys)
        active = Counter(name for tasks in found.values() for name in names(tasks.active))
        wanted = {f"{each.name}_{n}" for each in problem.subtopologies for n in range(each.task_count)}
        assert active == Counter(wanted)
        places = Counter(
            (problem.members[member].process_id, name)
            for member, tasks in found.items()
            for name in (*names(tasks.active), *names(tasks.standby))
        )
        assert max(places.values()) == 1, "a process runs a task twice"
        stateful = {each.name for each in problem.subtopologies if each.is_stateful}
        processes = {spec.process_id for spec in problem.members.values()}
        standby = Counter(name for tasks in found.values() for name in names(tasks.standby))
        count = min(problem.standbys, len(processes) - 1)
        assert all(standby[name] == count for name in wanted if name.split("_")[0] in stateful)
        assert not [name for name in standby if name.split("_")[0] not in stateful]
        problem.adopt(found)
        problem.change()


def test_tasks_stay_where_they_are_when_nothing_changes() -> None:
    problem = Problem(3)
    problem.adopt(assign(problem.members, problem.subtopologies, 1))
    again = assign(problem.members, problem.subtopologies, 1)
    assert again == {name: spec.previous for name, spec in problem.members.items()}


def test_a_standby_becomes_the_active_task_when_its_process_dies() -> None:
    stateful = [SubtopologySpec("0", 4, True)]
    members = {"a": MemberSpec("A"), "b": MemberSpec("B")}
    first = assign(members, stateful, 1)
    left = {"b": MemberSpec("B", first["b"])}
    assert first["b"].standby == first["a"].active
    assert assign(left, stateful, 1)["b"].active == {"0": frozenset(range(4))}


def test_tasks_without_state_have_no_standbys() -> None:
    found = assign({"a": MemberSpec("A"), "b": MemberSpec("B")}, [SubtopologySpec("0", 4, False)], 2)
    assert [tasks.standby for tasks in found.values()] == [{}, {}]


def test_strings_hash_as_in_java() -> None:
    assert string_hash("") == 0
    assert string_hash("hello") == 99_162_322
    assert string_hash("𝄞") == (31 * 0xD834 + 0xDD1E) % 2**32


def test_keys_come_in_the_order_of_a_java_hash_map() -> None:
    assert hash_order(["b", "a", "10", "9"]) == ["a", "b", "9", "10"]


def test_a_priority_queue_gives_the_smallest_first() -> None:
    rng = random.Random(1)
    values = [rng.randint(0, 50) for _ in range(200)]
    queue = PriorityQueue(values, float)
    assert [queue.pop() for _ in values] == sorted(values)


@pytest.mark.java
def test_apache_kafkas_assignor_decides_the_same(java: None) -> None:
    lines, ours = [], []
    for seed in range(PROBLEMS):
        problem = Problem(seed)
        for _ in range(4):
            found = assign(problem.members, problem.subtopologies, problem.standbys)
            lines.append(problem.line())
            ours.append(shown(found))
            problem.adopt(found)
            problem.change()
    done = apache.java_program(HERE / "JavaAssignor.java", input="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    for line, mine, theirs in zip(lines, ours, done.stdout.splitlines(), strict=True):
        assert mine == theirs, line

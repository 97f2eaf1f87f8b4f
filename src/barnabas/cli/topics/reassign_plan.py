"""Reassignment plans: their JSON, the proposal of a new plan, and the throttles that a plan needs.

In: texts and descriptions. Out: plans as values, and as text. Pure: sends no requests.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.partition_files import as_json, entries
from barnabas.cli.frame.partition_files import field as field_of
from barnabas.client.admin.reassignments import Replica
from barnabas.client.admin.topics import Reassignment
from barnabas.client.core.topology import TopicPartition

T = TypeVar("T", bound=Hashable)
ANY_LOG_DIR = "any"
VERSION = 1

Assignment = Mapping[TopicPartition, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Partitions in the order of the file (a partition may appear twice), and replicas' target log dirs."""

    partitions: list[tuple[TopicPartition, list[int]]] = field(default_factory=list)
    log_dirs: dict[Replica, str] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition, _ in self.partitions})


@dataclass(frozen=True, slots=True)
class Move:
    sources: frozenset[int]
    destinations: frozenset[int]


Moves = Mapping[TopicPartition, Move]


# -- files -------------------------------------------------------------------------------------------


def parse_plan(text: str) -> Plan:
    content = parse_object(text)
    plan = Plan()
    for entry in entries(content.get("partitions", [])):
        partition = TopicPartition(field_of(entry, "topic", str), field_of(entry, "partition", int))
        replicas = list_of(field_of(entry, "replicas", list, "Array"), int)
        dirs = list_of(entry["log_dirs"], str) if "log_dirs" in entry else [ANY_LOG_DIR] * len(replicas)
        if len(replicas) != len(dirs):
            raise ToolError(
                f"Size of replicas list [{', '.join(map(str, replicas))}] is different from "
                f"size of log dirs list [{', '.join(dirs)}] for partition {partition}"
            )
        plan.partitions.append((partition, replicas))
        plan.log_dirs.update(
            (Replica(replica, partition), path)
            for replica, path in zip(replicas, dirs, strict=True)
            if path != ANY_LOG_DIR
        )
    return plan


def parse_topics(text: str) -> list[str]:
    content = parse_object(text)
    topics = [field_of(entry, "topic", str) for entry in entries(content.get("topics", []))]
    if twice := repeated(topics):
        raise ToolError(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return topics


def parse_object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        raise ToolError("The input string is not a valid JSON") from None
    if not isinstance(content, dict):
        raise ToolError(f"Expected JSON object, received {as_json(content)}")
    version = field_of(content, "version", int) if "version" in content else VERSION
    if version != VERSION:
        raise ToolError(f"Not supported version field value {version}")
    return content


def list_of(values: Any, kind: type) -> list[Any]:
    if not isinstance(values, list):
        raise ToolError(f"Expected JSON array, received {as_json(values)}")
    return [field_of({"": value}, "", kind) for value in values]


def check_for_execution(plan: Plan) -> None:
    """Check a plan as Kafka's tool does before it changes anything."""
    if not plan.partitions:
        raise ToolError("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in plan.partitions):
        raise ToolError("Partition replica list cannot be empty")
    if twice := repeated(partition for partition, _ in plan.partitions):
        raise ToolError(
            f"Partition reassignment contains duplicate topic partitions: {','.join(map(str, twice))}"
        )
    bad = [
        f"{partition} contains multiple entries for {','.join(map(str, again))}"
        for partition, replicas in plan.partitions
        if (again := repeated(replicas))
    ]
    if bad:
        raise ToolError(f"Partition replica lists may not contain duplicate entries: {'. '.join(bad)}")


def repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def plan_text(assignment: Assignment, dirs: Mapping[Replica, str] | None = None) -> str:
    """A plan as JSON; the log dir of a replica is "any" if `dirs` does not name it."""
    known = dirs or {}
    return as_json(
        {
            "version": VERSION,
            "partitions": [
                {
                    "topic": topic_partition.topic,
                    "partition": topic_partition.partition,
                    "replicas": list(replicas),
                    "log_dirs": [known.get(Replica(each, topic_partition), ANY_LOG_DIR) for each in replicas],
                }
                for topic_partition, replicas in sorted(assignment.items())
            ],
        }
    )


# -- candidates --------------------------------------------------------------------------------------


def candidates(current: Assignment, racks: Mapping[int, str | None], rng: Random) -> Assignment:
    """Assign every topic to the given brokers, with as many replicas as its partitions have now."""
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic in sorted({partition.topic for partition in current}):
        mine = {partition: replicas for partition, replicas in current.items() if partition.topic == topic}
        factor = len(mine[min(mine)])
        if factor > len(racks):
            raise ToolError(
                f"The target replication factor of {factor} cannot be reached because only {len(racks)} "
                "broker(s) are registered or some brokers have all their log directories cordoned."
            )
        spread = spread_over(racks, len(mine), factor, rng)
        proposed |= {TopicPartition(topic, index): replicas for index, replicas in enumerate(spread)}
    return proposed


def spread_over(
    racks: Mapping[int, str | None], partitions: int, factor: int, rng: Random
) -> list[list[int]]:
    """Assign replicas as Kafka does: leaders round-robin, followers at a shift that grows with every round.

    With racks, brokers alternate between racks, and a partition uses no rack twice while another has none of
    it.
    """
    brokers = alternated(racks)
    rack_count = len(set(racks.values())) if any(racks.values()) else 1
    start, shift = rng.randrange(len(brokers)), rng.randrange(len(brokers))
    found = []
    for index in range(partitions):
        if index and index % len(brokers) == 0:
            shift += 1
        first = (index + start) % len(brokers)
        replicas = [brokers[first]]
        step = 0
        while len(replicas) < factor:
            behind = 1 + (shift * rack_count + step) % (len(brokers) - 1)
            broker = brokers[(first + behind) % len(brokers)]
            taken = {racks[each] for each in replicas}
            if broker not in replicas and (racks[broker] not in taken or len(taken) == rack_count):
                replicas.append(broker)
            step += 1
        found.append(replicas)
    return found


def alternated(racks: Mapping[int, str | None]) -> list[int]:
    """Brokers ordered so that the racks alternate."""
    waiting: dict[str, list[int]] = {}
    for broker in sorted(racks):
        waiting.setdefault(racks[broker] or "", []).append(broker)
    found: list[int] = []
    while len(found) < len(racks):
        for rack in sorted(waiting):
            if waiting[rack]:
                found.append(waiting[rack].pop(0))
    return found


# -- throttles ---------------------------------------------------------------------------------------


def moves_of(active: Mapping[TopicPartition, Reassignment], proposed: Assignment, now: Assignment) -> Moves:
    """The source and target brokers of each partition, including reassignments that are under way."""
    moves = {
        partition: Move(frozenset(each.replicas) - frozenset(each.adding), frozenset(each.adding))
        for partition, each in active.items()
    }
    for partition, replicas in proposed.items():
        sources = moves[partition].sources if partition in moves else frozenset(now[partition])
        moves[partition] = Move(sources, frozenset(replicas) - sources)
    return moves


def leader_throttles(moves: Moves) -> dict[str, str]:
    return by_topic({partition: move.sources for partition, move in moves.items()})


def follower_throttles(moves: Moves) -> dict[str, str]:
    return by_topic({partition: move.destinations - move.sources for partition, move in moves.items()})


def by_topic(brokers: Mapping[TopicPartition, frozenset[int]]) -> dict[str, str]:
    """`partition:broker,...` for every topic, sorted as text, as Kafka's tool writes them."""
    parts: dict[str, set[str]] = {}
    for topic_partition, some in brokers.items():
        parts.setdefault(topic_partition.topic, set()).update(
            f"{topic_partition.partition}:{broker}" for broker in some
        )
    return {topic: ",".join(sorted(each)) for topic, each in parts.items()}


def brokers_of(moves: Moves) -> list[int]:
    return sorted({broker for move in moves.values() for broker in move.sources | move.destinations})

"""Placement of new replicas on brokers, in stripes over racks and brokers.

In: brokers with racks and fences, a replication factor, random numbers. Out: one list of replicas for each
partition; the first is the leader and never fenced. The replicas of a partition spread over as many racks as
possible.
Does not know: existing load, directories, topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

from barnabas.controller.context import Rng
from barnabas.protocol import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class UsableBroker:
    id: int
    rack: str | None
    fenced: bool


class _Stripe:
    """Brokers in rotation: each at most once per partition, starting one further for each partition."""

    __slots__ = ("brokers", "partition", "start", "used")

    def __init__(self, brokers: list[int], rng: Rng) -> None:
        self.brokers = sorted(brokers)
        self.start = rng.randrange(len(brokers)) if brokers else 0
        self.partition = 0
        self.used = 0

    def next(self, partition: int) -> int | None:
        if not self.brokers:
            return None
        if self.partition != partition:
            self.partition = partition
            self.used = 0
            self.start = (self.start + 1) % len(self.brokers)
        if self.used >= len(self.brokers):
            return None
        broker = self.brokers[(self.start + self.used) % len(self.brokers)]
        self.used += 1
        return broker


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self, members: Sequence[UsableBroker], rng: Rng) -> None:
        self.fenced = _Stripe([broker.id for broker in members if broker.fenced], rng)
        self.unfenced = _Stripe([broker.id for broker in members if not broker.fenced], rng)

    def next(self, partition: int) -> int | None:
        found = self.unfenced.next(partition)
        return found if found is not None else self.fenced.next(partition)

    def shuffle(self, rng: Rng) -> None:
        rng.shuffle(self.fenced.brokers)
        rng.shuffle(self.unfenced.brokers)


class _Racks:
    def __init__(self, brokers: Sequence[UsableBroker], rng: Rng) -> None:
        self.rng = rng
        members: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            members.setdefault(broker.rack, []).append(broker)
        names = sorted(members, key=lambda rack: (rack is not None, rack or ""))
        self.racks = [_Rack(members[name], rng) for name in names]
        self.start = rng.randrange(len(self.racks))
        self.partition = 0
        self.unfenced_count = sum(1 for broker in brokers if not broker.fenced)

    def place(self, replication_factor: int) -> tuple[int, ...]:
        # After as many partitions as there are brokers the lists would repeat: shuffle first.
        if self.partition == self.unfenced_count and self.unfenced_count > 1:
            self.rng.shuffle(self.racks)
            for each in self.racks:
                each.shuffle(self.rng)
            self.partition = 0
        count = len(self.racks)
        self.start %= count
        leader_rack = self.start
        while (leader := self.racks[leader_rack].unfenced.next(self.partition)) is None:
            leader_rack = (leader_rack + 1) % count
        replicas = [leader]
        rack, skip_leader_rack = self.start, True
        while len(replicas) < replication_factor:
            if skip_leader_rack and rack == leader_rack:
                skip_leader_rack = False  # the leader is in this rack already
            elif (found := self.racks[rack].next(self.partition)) is not None:
                replicas.append(found)
            rack = (rack + 1) % count
        self.partition += 1
        self.start += 1
        return tuple(replicas)


def place(
    partition_count: int, replication_factor: int, brokers: Sequence[UsableBroker], rng: Rng
) -> list[tuple[int, ...]]:
    """The replicas of this many new partitions. Raises INVALID_REPLICATION_FACTOR if there are too few
    brokers."""
    return list(islice(placement(replication_factor, brokers, rng), partition_count))


def placement(
    replication_factor: int, brokers: Sequence[UsableBroker], rng: Rng
) -> Iterator[tuple[int, ...]]:
    """An endless iterator of the replicas of new partitions."""
    if replication_factor <= 0:
        raise _invalid(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if replication_factor > len(brokers):
        raise _invalid(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories "
            "cordoned."
        )
    if all(broker.fenced for broker in brokers):
        raise _invalid("All brokers are currently fenced.")
    racks = _Racks(brokers, rng)
    return (racks.place(replication_factor) for _ in count())


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)

"""Invariants of a group: a model that clients update with their requests and responses.

In: requests and responses of members, in the order of time. Raises `Wrong` if two members own a partition in
one generation, an epoch decreases, a request of a fenced member is accepted, a partition is assigned before
its owner has revoked it, or a committed offset is lost.
Does not know: messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from barnabas.simulation.world.history import Wrong


class Offsets:
    """Committed offsets of one group: they never move back."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._acknowledged: dict[int, int] = {}
        self._uncertain: dict[int, list[int]] = {}  # sent, with unknown result; they may still arrive

    def sending(self, partition: int, offset: int) -> None:
        self._uncertain.setdefault(partition, []).append(offset)

    def answered(self, partition: int, offset: int, *, is_committed: bool) -> None:
        self._uncertain[partition].remove(offset)
        if is_committed:
            self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, 0))

    def expected(self) -> dict[int, int]:
        """The minimum offsets that a fetch sent now must return."""
        return dict(self._acknowledged)

    def fetched(self, expected: dict[int, int], partition: int, offset: int) -> None:
        least = expected.get(partition, -1)
        if offset >= least:
            return
        if offset not in self._uncertain.get(partition, ()):
            raise Wrong(
                f"{self._group}: {least} was committed for partition {partition} and {offset} is found"
            )
        self._acknowledged[partition] = offset  # a delayed commit


@dataclass(slots=True)
class Member:
    """A member of a group of the consumer protocol from join to leave, as the client sees it."""

    name: str
    epoch: int = 0
    owned: set[int] = field(default_factory=set)
    last_good_s: float = 0.0  # when it sent its last successful heartbeat
    has_left: bool = False
    fenced_since_s: float | None = None  # its partitions were reassigned: later requests must be refused


class Ownership:
    """The owners of partitions in a group of the consumer protocol."""

    def __init__(self, group: str, now: Callable[[], float], session_s: float) -> None:
        self._group = group
        self._now = now
        self._session_s = session_s
        self._members: list[Member] = []

    def join(self, name: str) -> Member:
        member = Member(name, last_good_s=self._now())
        self._members.append(member)
        return member

    def rejoin(self, member: Member) -> None:
        """The member starts again with epoch 0, after a refusal or by itself."""
        member.epoch = 0
        member.owned.clear()
        member.fenced_since_s = None

    def released(self, member: Member, kept: Iterable[int]) -> None:
        """The member is about to report that it owns only these partitions."""
        member.owned &= set(kept)

    def good_heartbeat(self, member: Member, sent_s: float, sent_epoch: int, epoch: int) -> None:
        if member.fenced_since_s is not None and sent_epoch > 0 and sent_s > member.fenced_since_s:
            raise Wrong(f"{self._group}: {member.name} is still a member, its partitions are others'")
        if epoch < member.epoch:
            raise Wrong(f"{self._group}: the epoch of {member.name} went back from {member.epoch} to {epoch}")
        member.epoch = epoch
        member.last_good_s = max(member.last_good_s, sent_s)

    def good_commit(self, member: Member, sent_s: float) -> None:
        if member.fenced_since_s is not None and sent_s > member.fenced_since_s:
            raise Wrong(f"{self._group}: a commit of {member.name} is taken, its partitions are others'")

    def assigned(self, member: Member, partitions: Iterable[int]) -> None:
        for partition in partitions:
            for other in self._members:
                if other is not member and partition in other.owned:
                    self._reassign(other, member, partition)
            member.owned.add(partition)

    def _reassign(self, owner: Member, member: Member, partition: int) -> None:
        silent_s = self._now() - owner.last_good_s
        if not owner.has_left and silent_s < self._session_s:
            raise Wrong(
                f"{self._group}: partition {partition} is given to {member.name} while {owner.name} owns it, "
                f"heard of {silent_s:.3f} s ago"
            )
        owner.owned.discard(partition)
        if owner.fenced_since_s is None:
            owner.fenced_since_s = self._now()


class Generations:
    """The generations of a classic group: what was assigned in each, and which one is the newest."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.newest = -1  # the newest one that was assigned to a member
        self._owners: dict[int, dict[int, str]] = {}
        self._plans: dict[int, list[dict[str, frozenset[int]]]] = {}

    def joined(self, newest_before: int, generation: int) -> None:
        if generation < newest_before:
            raise Wrong(f"{self._group}: generation {generation} comes after {newest_before}")

    def planned(self, generation: int, plan: dict[str, frozenset[int]]) -> None:
        """A group leader sends this assignment. If there are two leaders, because the coordinator forgot one,
        only one assignment may be used."""
        self._plans.setdefault(generation, []).append(plan)

    def assigned(self, generation: int, identity: str, member_id: str, partitions: frozenset[int]) -> None:
        plans = self._plans.get(generation, [])
        if (
            not any(plan.get(member_id, frozenset()) == partitions for plan in plans)
            and identity == member_id
        ):
            raise Wrong(
                f"{self._group}: {identity} is assigned {sorted(partitions)} in generation {generation}, "
                f"which no leader said"
            )
        owners = self._owners.setdefault(generation, {})
        for partition in partitions:
            if owners.setdefault(partition, identity) != identity:
                raise Wrong(
                    f"{self._group}: {owners[partition]} and {identity} own partition {partition} in "
                    f"generation {generation}"
                )
        self.newest = max(self.newest, generation)

    def accepted(self, newest_before: int, generation: int, what: str) -> None:
        """A request of a generation succeeded. `newest_before` was the newest generation when it was sent."""
        if generation < newest_before:
            raise Wrong(f"{self._group}: {what} of generation {generation} is taken after {newest_before}")


class Copies:
    """Standby tasks of a streams group: a process never runs a task twice, as active task or standby."""

    def __init__(self, group: str, now: Callable[[], float], session_s: float) -> None:
        self._group = group
        self._now = now
        self._session_s = session_s
        self._members: list[tuple[Member, str]] = []  # with their processes
        self._standby: dict[str, set[int]] = {}  # by member
        self.shown: dict[str, frozenset[int]] = {}  # standbys by host, as its current member sees them

    def join(self, member: Member, process: str) -> None:
        self._members.append((member, process))
        self._standby[member.name] = set()

    def of(self, member: Member) -> set[int]:
        return self._standby[member.name]

    def keep(self, member: Member, standby: set[int]) -> None:
        self._standby[member.name] &= standby

    def assigned(self, member: Member, standby: set[int], *, is_checked: bool) -> None:
        """The member runs these standbys beside its active tasks."""
        self._standby[member.name] = set(standby)
        if not is_checked:
            return
        if standby & member.owned:
            raise Wrong(f"{self._group}: {member.name} runs {sorted(standby & member.owned)} twice")
        [process] = {each for other, each in self._members if other is member}
        for other, each in self._members:
            if other is member or each != process or other.has_left:
                continue
            if self._now() - other.last_good_s >= self._session_s:
                continue  # it may be dead
            twice = (standby | member.owned) & self._standby[other.name] | standby & other.owned
            if twice:
                raise Wrong(
                    f"{self._group}: {member.name} and {other.name} run {sorted(twice)} in one process"
                )

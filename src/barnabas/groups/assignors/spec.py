"""What an assignor is given and what it answers.

In: nothing; values only. An assignor sees members with their subscriptions and the partitions that the last
target assignment gave them, and the topics with their partitions and racks. It answers partitions per member.
Does not know: epochs, who still holds what, the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from barnabas.metadata.steps import Steps

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic with an empty set."""

NO_PARTITIONS: Assignment = {}


class AssignorError(Exception):
    """An assignor cannot assign: nothing changes, and the member that asked is told so."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    topic_ids: frozenset[bytes]  # invariant: all of them are topics of the group's spec
    instance_id: str | None = None
    rack_id: str | None = None
    assigned: Assignment = field(default_factory=dict)  # the last target; may name topics that are gone


@dataclass(frozen=True, slots=True)
class TopicSpec:
    partition_count: int
    racks: tuple[frozenset[str], ...] = ()  # racks that hold each partition; empty when none is known


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`topics` holds every topic that some member reads and that exists."""

    members: Mapping[str, MemberSpec]
    topics: Mapping[bytes, TopicSpec]

    def is_homogeneous(self) -> bool:
        """All members read the same topics."""
        subscriptions = iter(self.members.values())
        first = next(subscriptions, None)
        return first is None or all(member.topic_ids == first.topic_ids for member in subscriptions)


class Assignor(Protocol):
    """Registered by name; must be deterministic and leave its arguments alone."""

    @property
    def name(self) -> str: ...

    def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
        """Partitions by member; a member that is left out gets none. AssignorError if that cannot be said."""


@runtime_checkable
class SteppingAssignor(Protocol):
    """An assignor that lets others be served while it assigns thousands of partitions."""

    def assign_in_steps(self, spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
        """The same as `assign` in steps."""

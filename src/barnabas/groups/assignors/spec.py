"""The input and output of an assignor.

An assignor sees the members with their subscriptions and the partitions of their last target assignment, and
the topics with their partitions and racks. It returns partitions per member.
Does not know: epochs, current owners, the protocol.
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
    """An assignor cannot assign. Nothing changes, and the member that triggered it gets an error."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    topic_ids: frozenset[bytes]  # invariant: all of them are topics of the group's spec
    instance_id: str | None = None
    rack_id: str | None = None
    assigned: Assignment = field(default_factory=dict)  # the last target; may name topics that were deleted


@dataclass(frozen=True, slots=True)
class TopicSpec:
    partition_count: int
    racks: tuple[frozenset[str], ...] = ()  # racks that hold each partition; empty when none is known
    assignable: frozenset[int] | None = None  # for share groups; None: all partitions


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`topics` holds every existing topic that some member subscribed to."""

    members: Mapping[str, MemberSpec]
    topics: Mapping[bytes, TopicSpec]

    def is_homogeneous(self) -> bool:
        """Whether all members subscribed to the same topics."""
        subscriptions = iter(self.members.values())
        first = next(subscriptions, None)
        return first is None or all(member.topic_ids == first.topic_ids for member in subscriptions)


class Assignor(Protocol):
    """Registered by name. Must be deterministic and must not change its arguments."""

    @property
    def name(self) -> str: ...

    def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
        """The partitions of each member; a member that is left out gets none. Raises AssignorError if it
        cannot assign."""


@runtime_checkable
class SteppingAssignor(Protocol):
    """An assignor that pauses between steps, so that thousands of partitions do not block other requests."""

    def assign_in_steps(self, spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
        """The same as `assign` in steps."""

"""The roles of a member of the quorum, and what each keeps in mind. `member` alone changes them.

                       no leader in time               would win              wins
    UNATTACHED, FOLLOWER ---------------> PROSPECTIVE -----------> CANDIDATE ------> ELECTED
         ^     ^   ^                         |  too few votes         |                |  |
         |     |   +-------------------------+------------------------+                |  |
         |     +---------------------- a newer epoch, from anywhere -------------------+  |
         +-- RESIGNED <------------------ told to stop, or no majority fetches -----------+

An observer is a member without a vote: it is unattached or follows, and its time never runs out.
Does not know: when anything happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.raft.asks import ReplicaKey


@dataclass(slots=True)
class Unattached:
    """Nobody to follow: it may have voted, in which case it waits for whoever wins."""

    deadline_ms: int
    failures: int = 0  # elections in a row that it did not win


@dataclass(slots=True)
class Campaign:
    """Asking for votes, its own counted. Who answered either way is not asked again."""

    deadline_ms: int
    failures: int
    granted: dict[int, None] = field(default_factory=dict)
    rejected: dict[int, None] = field(default_factory=dict)

    def is_unanswered(self, voter_id: int) -> bool:
        return voter_id not in self.granted and voter_id not in self.rejected


class Prospective(Campaign):
    """Asks whether it would win, in the epoch that is: nothing is disturbed if not."""

    __slots__ = ()


class Candidate(Campaign):
    """Stands for an epoch of its own."""

    __slots__ = ()


@dataclass(slots=True)
class Follower:
    leader_id: int
    host: str
    port: int
    deadline_ms: int  # of the next successful fetch
    has_fetched: bool = False  # the leader lives: no reason to vote for another


@dataclass(slots=True)
class Elected:
    """Leads. A majority must fetch within a time, or others may have elected somebody already."""

    check_deadline_ms: int
    begin_at_ms: int  # when voters who have not fetched are told again
    fetched: dict[int, int] = field(default_factory=dict)  # voter -> when last


@dataclass(slots=True)
class Resigned:
    deadline_ms: int
    successors: Sequence[ReplicaKey]
    told: dict[int, None] = field(default_factory=dict)


Role = Unattached | Prospective | Candidate | Follower | Elected | Resigned

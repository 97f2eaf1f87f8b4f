"""The roles of a member of the quorum, and the state of each. Only `member` changes them.

                       no leader in time               would win              wins
    UNATTACHED, FOLLOWER ---------------> PROSPECTIVE -----------> CANDIDATE ------> ELECTED
         ^     ^   ^                         |  too few votes         |                |  |
         |     |   +-------------------------+------------------------+                |  |
         |     +---------------------- a newer epoch, from anywhere -------------------+  |
         +-- RESIGNED <------------------ told to stop, or no majority fetches -----------+

An observer is a member without a vote: it is unattached or a follower, and never stands for election.
Does not know: when anything happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.raft.messages import ReplicaKey


@dataclass(slots=True)
class Unattached:
    """Follows nobody. If it has voted in this epoch, it waits for the winner."""

    deadline_ms: int
    failures: int = 0  # consecutive elections that it did not win


@dataclass(slots=True)
class Campaign:
    """Collects votes, beginning with its own. Voters that responded are not asked again."""

    deadline_ms: int
    failures: int
    granted: dict[int, None] = field(default_factory=dict)
    rejected: dict[int, None] = field(default_factory=dict)

    def awaits_response_of(self, voter_id: int) -> bool:
        return voter_id not in self.granted and voter_id not in self.rejected


class Prospective(Campaign):
    """Asks whether it would win, without raising the epoch, so that a failure disturbs nobody."""

    __slots__ = ()


class Candidate(Campaign):
    """Stands for election in a new epoch."""

    __slots__ = ()


@dataclass(slots=True)
class Follower:
    leader_id: int
    host: str
    port: int
    deadline_ms: int  # for the next successful fetch
    has_fetched: bool = False  # the leader is alive: no pre-vote for another


@dataclass(slots=True)
class Elected:
    """Leads. A majority must fetch before the deadline, or the others may have elected another leader."""

    check_deadline_ms: int
    begin_at_ms: int  # when to send BeginQuorumEpoch again to voters that have not fetched
    fetched: dict[int, int] = field(default_factory=dict)  # voter -> time of its last fetch


@dataclass(slots=True)
class Resigned:
    deadline_ms: int
    successors: Sequence[ReplicaKey]
    informed: dict[int, None] = field(default_factory=dict)


Role = Unattached | Prospective | Candidate | Follower | Elected | Resigned

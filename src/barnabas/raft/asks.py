"""What members of the quorum say to each other about who leads; fetching is apart.

In: nothing. Out: the values that `member` takes in and gives out, free of versions and encodings.
Does not know: the protocol's messages (`quorum_messages` in `runtime` translates), connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.raft.election import Victory
from barnabas.raft.election_state import ElectionState
from barnabas.raft.voters import Voter, VoterEndpoint


class ReplicaKey(NamedTuple):
    id: int
    directory_id: bytes = NULL_UUID


class AskVote(NamedTuple):
    """May I lead `epoch`? As a pre-vote: would you say yes (KIP-996)?"""

    to: Voter
    epoch: int
    is_pre_vote: bool
    last_epoch: int  # of the asker's log
    end_offset: int


class TellBegin(NamedTuple):
    """I lead `epoch`."""

    to: Voter
    epoch: int


class TellEnd(NamedTuple):
    """I led `epoch` and do not any more; the first of these should follow me."""

    to: Voter
    epoch: int
    successors: Sequence[ReplicaKey]


Ask = AskVote | TellBegin | TellEnd


class VoteAsked(NamedTuple):
    """A vote request as it arrives."""

    candidate: ReplicaKey
    epoch: int
    is_pre_vote: bool
    last_epoch: int
    end_offset: int
    voter: ReplicaKey | None = None  # whom it was meant for, from version 1 on


class BeginTold(NamedTuple):
    leader_id: int
    epoch: int
    endpoints: Sequence[VoterEndpoint] = ()
    voter: ReplicaKey | None = None


class EndTold(NamedTuple):
    leader_id: int
    epoch: int
    successors: Sequence[ReplicaKey] = ()
    endpoints: Sequence[VoterEndpoint] = ()


class Verdict(NamedTuple):
    """The answer to any of them; who leads is told with it."""

    error: ErrorCode = ErrorCode.NONE
    is_granted: bool = False


class Ready(NamedTuple):
    """All that is to be done, in this order: give up leading, remember, lead, ask."""

    has_lost: bool = False
    save: ElectionState | None = None  # durable before anybody hears of it
    victory: Victory | None = None
    asks: Sequence[Ask] = ()

"""The messages that members of the quorum exchange about who leads. Fetching is separate.

In: nothing. Out: the values that `member` receives and sends, without versions and encodings.
Does not know: the protocol's messages (`quorum.quorum_messages` converts), connections.
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


class SendVote(NamedTuple):
    """A request for a vote in `epoch`, or for a pre-vote: would you vote for me (KIP-996)?"""

    to: Voter
    epoch: int
    is_pre_vote: bool
    last_epoch: int  # of the sender's log
    end_offset: int


class SendBeginEpoch(NamedTuple):
    """Tells a voter that this node leads `epoch`."""

    to: Voter
    epoch: int


class SendEndEpoch(NamedTuple):
    """Tells a voter that this node no longer leads `epoch`. The first successor should stand for election
    first."""

    to: Voter
    epoch: int
    successors: Sequence[ReplicaKey]


Outgoing = SendVote | SendBeginEpoch | SendEndEpoch


class VoteReceived(NamedTuple):
    """A received vote request."""

    candidate: ReplicaKey
    epoch: int
    is_pre_vote: bool
    last_epoch: int
    end_offset: int
    voter: ReplicaKey | None = None  # the intended receiver, from version 1 on


class BeginEpochReceived(NamedTuple):
    leader_id: int
    epoch: int
    endpoints: Sequence[VoterEndpoint] = ()
    voter: ReplicaKey | None = None


class EndEpochReceived(NamedTuple):
    leader_id: int
    epoch: int
    successors: Sequence[ReplicaKey] = ()
    endpoints: Sequence[VoterEndpoint] = ()


class Verdict(NamedTuple):
    """The response to any of the three requests. The leader hint travels beside it."""

    error: ErrorCode = ErrorCode.NONE
    is_granted: bool = False


class Ready(NamedTuple):
    """Everything to do after an input, in this order: stop leading, save, lead, send."""

    has_lost: bool = False
    save: ElectionState | None = None  # durable before any other node learns of it
    victory: Victory | None = None
    outgoing: Sequence[Outgoing] = ()

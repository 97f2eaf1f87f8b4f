"""How a node becomes leader: the state it must save first, and the records it writes first.

In: the saved state, the voters, the end of the log. Out: the state to save before anything else, and the
control records that open the epoch: LeaderChange, and the voters if the log does not have them yet. A sole
voter needs no other vote.
Does not know: files, requests, how votes are collected (`member`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.protocol import Message
from barnabas.protocol.messages.leader_change_message import LeaderChangeMessage
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.voters import BOOTSTRAP_OFFSET, Membership, Voter

# Kafka 4.3 writes version 0 whatever the kraft.version is.
LEADER_CHANGE_VERSION = 0


@dataclass(frozen=True, slots=True)
class Victory:
    state: ElectionState  # must be durable before the records are written
    membership: Membership
    control_records: list[Message]


def elect_sole_voter(
    saved: ElectionState, last_log_epoch: int, local: Voter, membership: Membership
) -> Victory:
    """Elect the only voter in an epoch that no node has seen."""
    if not membership.voters.is_sole(local.id, local.directory_id):
        raise ValueError(f"node {local.id} cannot elect itself: the voters are {list(membership.voters.ids)}")
    epoch = max(saved.epoch, last_log_epoch, 0) + 1
    return elected(epoch, local, membership, (local.id,))


def elected(epoch: int, local: Voter, membership: Membership, granting_ids: Sequence[int]) -> Victory:
    """The state and records that follow from winning an epoch with these votes."""
    state = ElectionState(epoch, leader_id=local.id, voted_id=NO_NODE)
    records: list[Message] = [leader_change(local.id, membership.voters.ids, granting_ids)]
    if membership.kraft_version > 0 and _needs_voters_record(membership, local):
        membership = Membership(
            membership.kraft_version, membership.voters.with_voter(local), membership.offset
        )
        records.extend(membership.control_records())
    return Victory(state, membership, records)


def _needs_voters_record(membership: Membership, local: Voter) -> bool:
    """Whether the log has no voters yet, or has an outdated address of this one."""
    known = membership.voters.voters.get(local.id)
    return membership.offset == BOOTSTRAP_OFFSET or known != local


def leader_change(
    leader_id: int, voter_ids: Iterable[int], granting_ids: Iterable[int]
) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        version=LEADER_CHANGE_VERSION,
        leader_id=leader_id,
        voters=[LeaderChangeMessage.Voter(voter_id=voter) for voter in voter_ids],
        granting_voters=[LeaderChangeMessage.Voter(voter_id=voter) for voter in granting_ids],
    )

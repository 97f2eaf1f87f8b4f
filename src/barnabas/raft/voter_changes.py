"""Changes of the voters (KIP-853): one voter at a time, each after the previous change is committed.

In: the voters in force, the leader's record of replicas, a voter to add, remove or update. Out: the new voter
set, or KafkaError with Kafka's messages.
Does not know: requests, the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.uuid import to_text
from barnabas.raft.leader import Leader
from barnabas.raft.messages import ReplicaKey
from barnabas.raft.voters import Membership, Voter, VoterSet

CAUGHT_UP_MS = 3_600_000  # a new voter must have fetched within this time


def check_ready(leader: Leader, membership: Membership, verb: str) -> None:
    """Raise KafkaError unless a change can be made now."""
    if leader.high_watermark < 0:
        raise _timed_out(
            "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        )
    if membership.kraft_version < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {verb} voter because the kraft.version feature is "
            f"{membership.kraft_version}",
        )
    if membership.offset >= leader.high_watermark:
        raise _timed_out(
            "Request timed out waiting for voters to commit the latest voter change at "
            f"{membership.offset} with HWM {leader.high_watermark}"
        )


def with_added(voters: VoterSet, voter: Voter) -> VoterSet:
    if voter.id in voters.voters:
        key = key_text(ReplicaKey(voter.id, voter.directory_id))
        raise KafkaError(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {key} is already part of the set of voters {_all(voters)}.",
        )
    return voters.with_voter(voter)


def without(voters: VoterSet, key: ReplicaKey) -> VoterSet:
    known = voters.voters.get(key.id)
    if known is None or known.directory_id != key.directory_id:
        raise KafkaError(
            ErrorCode.VOTER_NOT_FOUND,
            f"Cannot remove voter {key_text(key)} from the set of voters {_all(voters)}",
        )
    if len(voters.voters) == 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot remove {key_text(key)}: it is the last voter")
    return VoterSet({id: voter for id, voter in voters.voters.items() if id != key.id})


def with_updated(voters: VoterSet, voter: Voter) -> VoterSet:
    known = voters.voters.get(voter.id)
    if known is None or known.directory_id != voter.directory_id:
        raise KafkaError(ErrorCode.VOTER_NOT_FOUND, f"{voter.id} is no voter with this directory")
    return voters.with_voter(voter)


def dynamic(static: VoterSet, local: Voter, reported: Mapping[int, Voter]) -> VoterSet:
    """The static voters with their directories, as kraft.version 1 needs them. Every voter must have
    reported its directory."""
    known = {**reported, local.id: local}
    missing = [str(voter) for voter in static.ids if voter not in known]
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unable to set kraft.version to 1: the directories of voters {', '.join(missing)} are not known",
        )
    return VoterSet.of(known[voter] for voter in static.ids)


def is_caught_up(leader: Leader, key: ReplicaKey, now_ms: int) -> bool:
    """Whether an observer has replicated everything, so that the quorum need not wait for it as a voter."""
    observer = leader.observers.get((key.id, key.directory_id))
    if observer is None:
        return False
    return observer.last_caught_up_ms > 0 and observer.last_fetch_ms > now_ms - CAUGHT_UP_MS


def key_text(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.id}, directoryId={to_text(key.directory_id)})"


def _all(voters: VoterSet) -> str:
    keys = (ReplicaKey(voter.id, voter.directory_id) for voter in voters.voters.values())
    return f"[{', '.join(map(key_text, keys))}]"


def _timed_out(message: str) -> KafkaError:
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)

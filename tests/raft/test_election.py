import json

import pytest

from barnabas.protocol.messages.kraft_version_record import KRaftVersionRecord
from barnabas.protocol.messages.leader_change_message import LeaderChangeMessage
from barnabas.protocol.messages.voters_record import VotersRecord
from barnabas.raft import election_state
from barnabas.raft.election import elect_sole_voter
from barnabas.raft.election_state import CorruptElectionState, ElectionState
from barnabas.raft.voters import Membership, Voter, VoterEndpoint, VoterSet

DIRECTORY = b"d" * 16
LOCAL = Voter(1, DIRECTORY, (VoterEndpoint("CONTROLLER", "127.0.0.1", 9093),))
STATIC = Membership(0, VoterSet.of([Voter(1)]))
DYNAMIC = Membership(1, VoterSet.of([LOCAL]))


def test_a_sole_voter_is_elected_in_an_epoch_that_no_node_has_seen() -> None:
    assert elect_sole_voter(ElectionState(), 0, LOCAL, STATIC).state == ElectionState(1, leader_id=1)
    assert elect_sole_voter(ElectionState(epoch=5), 3, LOCAL, STATIC).state.epoch == 6
    assert elect_sole_voter(ElectionState(epoch=5), 9, LOCAL, STATIC).state.epoch == 10


def test_static_voters_are_not_written_to_the_log() -> None:
    [record] = elect_sole_voter(ElectionState(), 0, LOCAL, STATIC).control_records
    assert isinstance(record, LeaderChangeMessage)
    assert record.leader_id == 1
    assert [voter.voter_id for voter in record.voters] == [1]


def test_dynamic_voters_are_written_once() -> None:
    first = elect_sole_voter(ElectionState(), 0, LOCAL, DYNAMIC)
    kinds = [type(record) for record in first.control_records]
    assert kinds == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    in_the_log = Membership(1, first.membership.voters, offset=2)
    assert len(elect_sole_voter(first.state, 1, LOCAL, in_the_log).control_records) == 1


def test_a_voter_that_moved_writes_its_new_address() -> None:
    moved = Voter(1, DIRECTORY, (VoterEndpoint("CONTROLLER", "127.0.0.1", 19093),))
    victory = elect_sole_voter(ElectionState(), 1, moved, Membership(1, DYNAMIC.voters, offset=2))
    assert victory.membership.voters.voters[1] == moved
    assert isinstance(victory.control_records[-1], VotersRecord)


@pytest.mark.parametrize(
    "voters",
    [
        VoterSet(),
        VoterSet.of([Voter(2)]),
        VoterSet.of([Voter(1), Voter(2)]),
        VoterSet.of([Voter(1, b"o" * 16)]),
    ],
)
def test_a_node_that_is_not_the_only_voter_cannot_elect_itself(voters: VoterSet) -> None:
    with pytest.raises(ValueError, match="cannot elect itself"):
        elect_sole_voter(ElectionState(), 0, LOCAL, Membership(0, voters))


def test_membership_is_replayed_from_its_own_records() -> None:
    membership = Membership()
    for offset, record in enumerate(DYNAMIC.control_records()):
        membership = membership.replay(record, offset)
    assert membership == Membership(1, DYNAMIC.voters, offset=1)


# What Apache Kafka 4.3.1 wrote.
RECORDED = [
    '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1}],"data_version":0}',
    '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
]


@pytest.mark.parametrize(("kraft_version", "text"), list(enumerate(RECORDED)))
def test_quorum_state_is_written_as_kafka_writes_it(kraft_version: int, text: str) -> None:
    state = election_state.decode(text)
    assert state == ElectionState(1, leader_id=1)
    assert election_state.encode(state, kraft_version, [1]) == text


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"data_version":2}', json.dumps({"data_version": 0, "leaderEpoch": "x"})]
)
def test_a_damaged_quorum_state_is_noticed(text: str) -> None:
    with pytest.raises(CorruptElectionState):
        election_state.decode(text)

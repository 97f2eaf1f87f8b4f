from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.raft.leader import Leader
from barnabas.raft.quorum_description import describe_quorum
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet


def leader(voters: int, start: int = 0) -> Leader:
    endpoints = (VoterEndpoint("CONTROLLER", "h", 9093),)
    return Leader(
        1, 5, start, VoterSet.of(Voter(number, endpoints=endpoints) for number in range(1, voters + 1))
    )


def test_a_sole_voter_commits_what_it_has_synced() -> None:
    sole = leader(1)
    assert sole.high_watermark == -1
    assert sole.synced(3, now_ms=0)
    assert sole.high_watermark == 3
    assert not sole.synced(3, now_ms=1)


def test_three_voters_commit_what_two_have() -> None:
    three = leader(3)
    assert not three.synced(10, now_ms=0)
    assert three.replicated(2, 4, now_ms=0, leader_end_offset=10)
    assert three.high_watermark == 4
    assert three.replicated(3, 7, now_ms=0, leader_end_offset=10)
    assert three.high_watermark == 7


def test_entries_of_older_epochs_are_not_committed_by_themselves() -> None:
    sole = leader(1, start=10)
    assert not sole.synced(10, now_ms=0)
    assert sole.high_watermark == -1
    assert sole.synced(11, now_ms=0)


def test_nodes_without_a_vote_commit_nothing() -> None:
    three = leader(3)
    three.synced(10, now_ms=0)
    assert not three.replicated(9, 10, now_ms=0, leader_end_offset=10)
    assert three.high_watermark == -1


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50)), max_size=40))
def test_the_high_watermark_never_moves_back_and_needs_a_majority(ends: list[tuple[int, int]]) -> None:
    five = leader(5)
    known = dict.fromkeys(range(1, 6), -1)
    before = -1
    for voter, end in ends:
        known[voter] = max(known[voter], end)
        five.replicated(voter, end, now_ms=0, leader_end_offset=50)
        assert five.high_watermark >= before
        before = five.high_watermark
        assert before == -1 or sum(1 for reached in known.values() if reached >= before) >= 3


def ask(*names: tuple[str, int]) -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[
            topic(topic_name=name, partitions=[topic.PartitionData(partition_index=n)]) for name, n in names
        ]
    )


def test_the_quorum_is_described_with_its_voters() -> None:
    sole = leader(1)
    sole.synced(3, now_ms=100)
    response = describe_quorum(ask(("__cluster_metadata", 0)), 2, sole, end_offset=4, now_ms=200)
    [partition] = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 5, 3)
    [voter] = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset, voter.last_caught_up_timestamp) == (1, 4, 200)
    assert [node.node_id for node in response.nodes] == [1]
    assert response.encode(2)


def test_older_versions_know_no_directories_and_nodes() -> None:
    voters = VoterSet.of([Voter(1, b"d" * 16)])
    response = describe_quorum(ask(("__cluster_metadata", 0)), 0, Leader(1, 5, 0, voters), 4, 200)
    assert response.encode(0)
    assert response.nodes == []


def test_other_partitions_are_unknown_to_the_quorum() -> None:
    for names in ([("t", 0)], [("__cluster_metadata", 1)], [("__cluster_metadata", 0), ("t", 0)]):
        response = describe_quorum(ask(*names), 2, leader(1), 4, 200)
        for topic in response.topics:
            assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

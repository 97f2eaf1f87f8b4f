"""DescribeQuorum: leader, voters and observers of the metadata partition, and how far each has come.

In: the request, the leader's books. Out: the answer, in every version's terms.
Does not know: the log, time (it comes in).
"""

from __future__ import annotations

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.raft.leader import Leader, ReplicaProgress

METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0

TopicData = DescribeQuorumResponse.TopicData
PartitionData = TopicData.PartitionData


def describe_quorum(
    request: DescribeQuorumRequest, leader: Leader, end_offset: int, now_ms: int
) -> DescribeQuorumResponse:
    topics = []
    for topic in request.topics:
        partitions = [
            _partition(leader, end_offset, now_ms)
            if topic.topic_name == METADATA_TOPIC and each.partition_index == METADATA_PARTITION
            else _unknown(each.partition_index)
            for each in topic.partitions
        ]
        topics.append(TopicData(topic_name=topic.topic_name, partitions=partitions))
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=_nodes(leader))


def _partition(leader: Leader, end_offset: int, now_ms: int) -> PartitionData:
    voters = []
    for voter, progress in leader.voter_progress().items():
        if voter == leader.node_id:
            # The leader is where it is: its own end is what it has written, and it is never behind.
            progress = ReplicaProgress(progress.directory_id, end_offset, now_ms, now_ms)
        voters.append(_state(voter, progress))
    return PartitionData(
        partition_index=METADATA_PARTITION,
        error_message=None,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        high_watermark=leader.high_watermark,
        current_voters=voters,
        observers=[_state(node, progress) for node, progress in leader.observers.items()],
    )


def _state(node_id: int, progress: ReplicaProgress) -> DescribeQuorumResponse.ReplicaState:
    return DescribeQuorumResponse.ReplicaState(
        replica_id=node_id,
        replica_directory_id=progress.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _unknown(partition: int) -> PartitionData:
    return PartitionData(
        partition_index=partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=None
    )


def _nodes(leader: Leader) -> list[DescribeQuorumResponse.Node]:
    return [
        DescribeQuorumResponse.Node(
            node_id=voter.id,
            listeners=[
                DescribeQuorumResponse.Node.Listener(name=each.name, host=each.host, port=each.port)
                for each in voter.endpoints
            ],
        )
        for voter in leader.voters.voters.values()
    ]

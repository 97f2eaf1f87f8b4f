"""DescribeQuorum: leader, voters and observers of the metadata partition, and how far each has replicated.

In: the request, the leader's record of progress. Out: the response. A request must name the metadata
partition and nothing else; otherwise all its partitions are unknown.
Does not know: the log, time (it comes in).
"""

from __future__ import annotations

from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.raft.leader import Leader, ReplicaProgress

METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
DIRECTORY_IDS = 2  # the first version with directories and nodes

TopicData = DescribeQuorumResponse.TopicData
PartitionData = TopicData.PartitionData


def describe_quorum(
    request: DescribeQuorumRequest, version: int, leader: Leader, end_offset: int, now_ms: int
) -> DescribeQuorumResponse:
    named = [
        (topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions
    ]
    if len(request.topics) != 1 or named != [(METADATA_TOPIC, METADATA_PARTITION)]:
        return DescribeQuorumResponse(topics=_unknown(request))
    partition = _partition(leader, version, end_offset, now_ms)
    return DescribeQuorumResponse(
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=_nodes(leader) if version >= DIRECTORY_IDS else [],
    )


def _partition(leader: Leader, version: int, end_offset: int, now_ms: int) -> PartitionData:
    voters = []
    for voter, progress in leader.voter_progress().items():
        if voter == leader.node_id:
            # The leader's own end is what it has written, and it is never behind.
            progress = ReplicaProgress(progress.directory_id, end_offset, now_ms, now_ms)
        voters.append(_state(voter, progress, version))
    return PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        high_watermark=leader.high_watermark,
        current_voters=voters,
        observers=[_state(node, progress, version) for (node, _), progress in leader.observers.items()],
    )


def _state(node_id: int, progress: ReplicaProgress, version: int) -> DescribeQuorumResponse.ReplicaState:
    return DescribeQuorumResponse.ReplicaState(
        replica_id=node_id,
        replica_directory_id=progress.directory_id if version >= DIRECTORY_IDS else NULL_UUID,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def not_leader_response(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """The response of a node that does not lead the quorum."""
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    message = (
        "For requests intended only for the leader, this error indicates that the broker is not the "
        "current leader. For requests intended for any replica, this error indicates that the broker is not "
        "a replica of the topic partition."
    )
    return DescribeQuorumResponse(topics=_refused(request, code, message))


def _unknown(request: DescribeQuorumRequest) -> list[TopicData]:
    return _refused(
        request,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "This server does not host this topic-partition.",
    )


def _refused(request: DescribeQuorumRequest, code: ErrorCode, message: str) -> list[TopicData]:
    return [
        TopicData(
            topic_name=topic.topic_name,
            partitions=[
                PartitionData(
                    partition_index=each.partition_index,
                    error_code=code,
                    error_message=message,
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]


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

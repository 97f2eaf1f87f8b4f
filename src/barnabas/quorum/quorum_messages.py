"""Converts between the quorum's values and Kafka's messages: Vote, BeginQuorumEpoch, EndQuorumEpoch, all
versions.

In: requests and responses of the protocol, or values of `raft.messages`. Out: the other of the two. It
refuses requests of another cluster and requests that do not name the metadata partition.
Does not know: how to respond.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol import NULL_UUID, ErrorCode, Message
from barnabas.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from barnabas.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from barnabas.protocol.messages.vote import VoteRequest, VoteResponse
from barnabas.raft.leader_hint import LeaderHint, hint_from
from barnabas.raft.messages import (
    BeginEpochReceived,
    EndEpochReceived,
    Outgoing,
    ReplicaKey,
    SendBeginEpoch,
    SendEndEpoch,
    SendVote,
    Verdict,
    VoteReceived,
)
from barnabas.raft.quorum_description import METADATA_PARTITION, METADATA_TOPIC
from barnabas.raft.voters import Voter, VoterEndpoint

PRE_VOTE = 2  # the first version of Vote with pre-votes


def request_for(outgoing: Outgoing, local: Voter, cluster_id: str) -> Message:
    """The request that carries this value."""
    if isinstance(outgoing, SendVote):
        vote = VoteRequest.TopicData
        return VoteRequest(
            cluster_id=cluster_id,
            voter_id=outgoing.to.id,
            topics=[
                vote(
                    topic_name=METADATA_TOPIC,
                    partitions=[
                        vote.PartitionData(
                            partition_index=METADATA_PARTITION,
                            replica_epoch=outgoing.epoch,
                            replica_id=local.id,
                            replica_directory_id=local.directory_id,
                            voter_directory_id=outgoing.to.directory_id,
                            last_offset_epoch=outgoing.last_epoch,
                            last_offset=outgoing.end_offset,
                            pre_vote=outgoing.is_pre_vote,
                        )
                    ],
                )
            ],
        )
    if isinstance(outgoing, SendBeginEpoch):
        begin = BeginQuorumEpochRequest.TopicData
        return BeginQuorumEpochRequest(
            cluster_id=cluster_id,
            voter_id=outgoing.to.id,
            topics=[
                begin(
                    topic_name=METADATA_TOPIC,
                    partitions=[
                        begin.PartitionData(
                            partition_index=METADATA_PARTITION,
                            voter_directory_id=outgoing.to.directory_id,
                            leader_id=local.id,
                            leader_epoch=outgoing.epoch,
                        )
                    ],
                )
            ],
            leader_endpoints=[
                BeginQuorumEpochRequest.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
                for each in local.endpoints
            ],
        )
    return _end_request(outgoing, local, cluster_id)


def _end_request(outgoing: SendEndEpoch, local: Voter, cluster_id: str) -> EndQuorumEpochRequest:
    end = EndQuorumEpochRequest.TopicData
    partition = end.PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=local.id,
        leader_epoch=outgoing.epoch,
        preferred_successors=[each.id for each in outgoing.successors],
        preferred_candidates=[
            end.PartitionData.ReplicaInfo(candidate_id=each.id, candidate_directory_id=each.directory_id)
            for each in outgoing.successors
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[end(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            EndQuorumEpochRequest.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in local.endpoints
        ],
    )


def read_response(response: Any) -> tuple[Verdict, LeaderHint]:
    """Read a response to any of the three requests. An error of the whole request has no leader hint."""
    if response.error_code != ErrorCode.NONE or not response.topics or not response.topics[0].partitions:
        return Verdict(ErrorCode(response.error_code) or ErrorCode.UNKNOWN_SERVER_ERROR), LeaderHint(epoch=-1)
    partition = response.topics[0].partitions[0]
    hint = hint_from(partition.leader_id, partition.leader_epoch, response.node_endpoints)
    is_granted = getattr(partition, "vote_granted", False)
    return Verdict(ErrorCode(partition.error_code), is_granted), hint


def reason_to_refuse(request: Any, cluster_id: str) -> ErrorCode:
    """The error of a request as a whole, or NONE."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    named = [
        (topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions
    ]
    return ErrorCode.NONE if named == [(METADATA_TOPIC, METADATA_PARTITION)] else ErrorCode.INVALID_REQUEST


def read_vote(request: VoteRequest, version: int) -> VoteReceived:
    partition = request.topics[0].partitions[0]
    voter = ReplicaKey(request.voter_id, partition.voter_directory_id) if version >= 1 else None
    return VoteReceived(
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        epoch=partition.replica_epoch,
        is_pre_vote=version >= PRE_VOTE and partition.pre_vote,
        last_epoch=partition.last_offset_epoch,
        end_offset=partition.last_offset,
        voter=voter,
    )


def read_begin_epoch(request: BeginQuorumEpochRequest, version: int) -> BeginEpochReceived:
    partition = request.topics[0].partitions[0]
    voter = ReplicaKey(request.voter_id, partition.voter_directory_id) if version >= 1 else None
    return BeginEpochReceived(
        partition.leader_id, partition.leader_epoch, _endpoints(request, version), voter
    )


def read_end_epoch(request: EndQuorumEpochRequest, version: int) -> EndEpochReceived:
    partition = request.topics[0].partitions[0]
    if version >= 1:
        successors = [
            ReplicaKey(each.candidate_id, each.candidate_directory_id)
            for each in partition.preferred_candidates
        ]
    else:
        successors = [ReplicaKey(each, NULL_UUID) for each in partition.preferred_successors]
    return EndEpochReceived(
        partition.leader_id, partition.leader_epoch, successors, _endpoints(request, version)
    )


def _endpoints(request: Any, version: int) -> list[VoterEndpoint]:
    if version < 1:
        return []
    return [VoterEndpoint(each.name, each.host, each.port) for each in request.leader_endpoints]


def response_to(request: Message, version: int, verdict: Verdict, leader: LeaderHint) -> Message:
    """The response to any of the three requests."""
    response_type: Any = {
        VoteRequest: VoteResponse,
        BeginQuorumEpochRequest: BeginQuorumEpochResponse,
        EndQuorumEpochRequest: EndQuorumEpochResponse,
    }[type(request)]
    partition = response_type.TopicData.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=verdict.error,
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
    )
    if isinstance(request, VoteRequest):
        partition.vote_granted = verdict.is_granted
    response = response_type(
        topics=[response_type.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )
    if version >= 1 and leader.host:
        response.node_endpoints = [
            response_type.NodeEndpoint(node_id=leader.leader_id, host=leader.host, port=leader.port)
        ]
    return response  # type: ignore[no-any-return]


def refusal_of(request: Message, error: ErrorCode) -> Message:
    response_type: Any = {
        VoteRequest: VoteResponse,
        BeginQuorumEpochRequest: BeginQuorumEpochResponse,
        EndQuorumEpochRequest: EndQuorumEpochResponse,
    }[type(request)]
    return response_type(error_code=error)  # type: ignore[no-any-return]

"""Requests of the quorum, on controllers' listeners: elections, and replication of the metadata log.

Vote 0-2 (2 has pre-votes, KIP-996), BeginQuorumEpoch 0-1, EndQuorumEpoch 0-1 (1 has directories and
endpoints, KIP-853), Fetch 4-18 (17 has the replica's directory, 18 the high watermark that it knows,
KIP-1166), FetchSnapshot 0-1; AddRaftVoter 0-1 and RemoveRaftVoter 0, which brokers forward, and
UpdateRaftVoter 0.
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import alter_cluster, cluster_action
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import BOTH, to_controller
from barnabas.protocol import Message
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.protocol.messages.vote import VoteRequest


@handles(FetchRequest, "4-18", needs=cluster_action, listeners="controller")
def fetch_metadata(request: FetchRequest, context: RequestContext) -> Awaitable[Message]:
    return context.broker.quorum.serving.fetch(request, context.version)


@handles(FetchSnapshotRequest, "0-1", needs=cluster_action, listeners="controller")
def fetch_snapshot(request: FetchSnapshotRequest, context: RequestContext) -> Awaitable[Message]:
    return context.broker.quorum.serving.fetch_snapshot(request)


@handles(VoteRequest, "0-2", needs=cluster_action, listeners="controller")
def vote(request: VoteRequest, context: RequestContext) -> Message:
    return context.broker.quorum.vote(request, context.version)


@handles(BeginQuorumEpochRequest, "0-1", needs=cluster_action, listeners="controller")
def begin_quorum_epoch(request: BeginQuorumEpochRequest, context: RequestContext) -> Message:
    return context.broker.quorum.begin_epoch(request, context.version)


@handles(EndQuorumEpochRequest, "0-1", needs=cluster_action, listeners="controller")
def end_quorum_epoch(request: EndQuorumEpochRequest, context: RequestContext) -> Message:
    return context.broker.quorum.end_epoch(request, context.version)


add_voter = handles(AddRaftVoterRequest, "0-1", needs=alter_cluster, listeners=BOTH)(to_controller)
remove_voter = handles(RemoveRaftVoterRequest, "0", needs=alter_cluster, listeners=BOTH)(to_controller)


@handles(UpdateRaftVoterRequest, "0", needs=cluster_action, listeners="controller")
def update_voter(request: UpdateRaftVoterRequest, context: RequestContext) -> Awaitable[Message]:
    return context.broker.quorum.voter_changes.update(request)

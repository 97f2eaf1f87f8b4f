"""Requests that the controller decides on: topics, partitions, configurations, the quorum.

The broker forwards them unchanged: by a call if the active controller is on this node, else in an Envelope.
A controller that gets such a request directly and is not active responds NOT_CONTROLLER.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.broker.api import needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.routes import handles
from barnabas.broker.quotas.client_quotas import Mutations
from barnabas.broker.quotas.throttling import set_throttle_time
from barnabas.controller.context import unlimited
from barnabas.protocol import Message
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from barnabas.security.acls.vocabulary import Operation

BOTH = "broker controller"
CONTROLLER = "controller"


# Versions since which clients understand THROTTLING_QUOTA_EXCEEDED (KIP-599); others wait afterwards.
STRICT_SINCE = {CreateTopicsRequest: 6, DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}


def change_topics(request: Message, context: RequestContext) -> Awaitable[Message]:
    """Forward a request whose created or deleted partitions count against the client's quota."""
    strict = context.version >= STRICT_SINCE[type(request)]
    mutations = context.broker.quotas.mutating(context.user, context.client_id, strict=strict)
    if mutations is None:
        return to_controller(request, context)
    return forward_counted(request, context, mutations)


async def forward_counted(request: Message, context: RequestContext, mutations: Mutations) -> Message:
    response: Message = await to_controller(request, context, mutations.spend)
    wait_ms = mutations.wait_ms()
    if wait_ms:
        set_throttle_time(response, wait_ms)
        context.channel.mute(wait_ms)
    return response


def to_controller(
    request: Message, context: RequestContext, charge_mutations: Callable[[int], None] = unlimited
) -> Awaitable[Any]:
    broker = context.broker
    if context.channel.listener.kind == CONTROLLER:
        assert broker.own_controller is not None  # only controllers have this listener
        return broker.own_controller.handle(request, context.version, charge_mutations, context.principal)
    return broker.controller.handle(request, context.version, charge_mutations, context)


create_partitions = handles(
    CreatePartitionsRequest,
    "0-3",
    needs=needs.each(needs.TOPIC, Operation.ALTER, "topics.name", "results"),
    listeners=BOTH,
)(change_topics)
describe_quorum = handles(DescribeQuorumRequest, "0-2", needs=needs.describe_cluster, listeners=BOTH)(
    to_controller
)
update_features = handles(UpdateFeaturesRequest, "0-2", needs=needs.alter_cluster, listeners=BOTH)(
    to_controller
)
elect_leaders = handles(ElectLeadersRequest, "0-2", needs=needs.alter_cluster, listeners=BOTH)(to_controller)
unregister_broker = handles(UnregisterBrokerRequest, "0-0", needs=needs.alter_cluster, listeners=BOTH)(
    to_controller
)
assign_replicas_to_dirs = handles(
    AssignReplicasToDirsRequest, "0-0", needs=needs.cluster_action, listeners=CONTROLLER
)(to_controller)
alter_partition = handles(AlterPartitionRequest, "2-3", needs=needs.cluster_action, listeners=CONTROLLER)(
    to_controller
)
alter_partition_reassignments = handles(
    AlterPartitionReassignmentsRequest, "0-1", needs=needs.alter_cluster, listeners=BOTH
)(to_controller)
alter_user_scram_credentials = handles(
    AlterUserScramCredentialsRequest, "0-0", needs=needs.alter_cluster, listeners=BOTH
)(to_controller)

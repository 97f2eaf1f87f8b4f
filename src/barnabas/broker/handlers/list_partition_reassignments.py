"""ListPartitionReassignments: partitions whose replicas are on their way to other brokers."""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_cluster
from barnabas.broker.api.routes import handles
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@handles(ListPartitionReassignmentsRequest, "0-0", needs=describe_cluster, listeners="broker controller")
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> Awaitable[ListPartitionReassignmentsResponse]:
    from barnabas.controller.elections import list_reassignments  # rarely needed

    return context.broker.pieces.run(list_reassignments(context.broker.image.topics, request))

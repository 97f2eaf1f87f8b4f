"""DescribeCluster: the cluster's id, controller and brokers (on a controller's listener, controllers)."""

from __future__ import annotations

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import alter_cluster
from barnabas.broker.api.routes import handles
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2


@handles(DescribeClusterRequest, "0-2", needs=alter_cluster.on("controller"), listeners="broker controller")
def describe_cluster(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    broker = context.broker
    kind = BROKERS if context.channel.listener.kind == "broker" else CONTROLLERS
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        return refused(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        )
    if request.endpoint_type != kind:
        asked, here = ("BROKER", "CONTROLLER") if kind == CONTROLLERS else ("CONTROLLER", "BROKER")
        return refused(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if context.version else ErrorCode.INVALID_REQUEST,
            f"The request was sent to an endpoint of type {here}, but we wanted an endpoint of type {asked}",
        )
    nodes = (
        broker.nodes(context.listener, with_fenced=request.include_fenced_brokers)
        if kind == BROKERS
        else broker.controller_nodes(context.listener)
    )
    return DescribeClusterResponse(
        endpoint_type=kind,
        cluster_id=broker.cluster_id,
        controller_id=broker.any_broker_id() if kind == BROKERS else broker.controller_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node.id, host=node.host, port=node.port, rack=node.rack, is_fenced=node.is_fenced
            )
            for node in nodes
        ],
        cluster_authorized_operations=authorized.on_cluster(context)
        if request.include_cluster_authorized_operations
        else authorized.NOT_ASKED,
    )


def refused(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)

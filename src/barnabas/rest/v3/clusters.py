"""The cluster and its brokers as resources of v3."""

from __future__ import annotations

from starlette.responses import Response

from barnabas.client.core.topology import Node
from barnabas.rest.kafka_errors import refusal
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import NOT_THERE, OTHER_CLUSTER, PATH_TYPES
from barnabas.services.openapi import Operations

CLUSTERS = Operations("v3: cluster", PATH_TYPES)
NO_CONTROLLER = -1


@CLUSTERS.declare(
    "GET", "/v3/clusters", "List the one cluster behind the proxy", responses={200: "ClusterDataList"}
)
async def list_clusters(call: Call) -> Response:
    url = f"{call.links.base}/v3/clusters"
    return await lists.listed("KafkaClusterList", url, lists.page_of([await cluster_of(call)]))


@CLUSTERS.declare(
    "GET",
    "/v3/clusters/{cluster_id}",
    "Describe the cluster",
    responses={200: "ClusterData"},
    errors=(OTHER_CLUSTER,),
)
async def get_cluster(call: Call) -> Response:
    return lists.one(await cluster_of(call))


@CLUSTERS.declare(
    "GET",
    "/v3/clusters/{cluster_id}/brokers",
    "List the brokers",
    responses={200: "BrokerDataList"},
    errors=(OTHER_CLUSTER,),
)
async def list_brokers(call: Call) -> Response:
    nodes = (await call.kafka.admin.describe_cluster()).nodes
    found = (broker_resource(call.links, node) for node in nodes)
    return await lists.listed("KafkaBrokerList", call.links.url("brokers"), lists.page_of(found))


@CLUSTERS.declare(
    "GET",
    "/v3/clusters/{cluster_id}/brokers/{broker_id}",
    "Describe a broker",
    responses={200: "BrokerData"},
    errors=(OTHER_CLUSTER, NOT_THERE),
)
async def get_broker(call: Call) -> Response:
    return lists.one(broker_resource(call.links, await broker_of(call)))


async def cluster_of(call: Call) -> Resource:
    links = call.links
    controller_id = (await call.kafka.admin.describe_cluster()).controller_id
    fields = {
        "acls": links.related("acls"),
        "brokers": links.related("brokers"),
        "broker_configs": links.related("broker-configs"),
        "consumer_groups": links.related("consumer-groups"),
        "topics": links.related("topics"),
        "partition_reassignments": links.related("topics", "-", "partitions", "-", "reassignment"),
    }
    if controller_id != NO_CONTROLLER:
        fields = {"controller": links.related("brokers", controller_id), **fields}
    return links.resource("KafkaCluster", links.url(), links.name(), fields)


async def broker_of(call: Call) -> Node:
    """The broker that the path names."""
    broker_id = call.number("broker_id")
    for node in (await call.kafka.admin.describe_cluster()).nodes:
        if node.id == broker_id:
            return node
    raise refusal(404, 404, f"Broker {broker_id} cannot be found.")


def broker_resource(links: Links, node: Node) -> Resource:
    fields = {
        "broker_id": node.id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "configs": links.related("brokers", node.id, "configs"),
        "partition_replicas": links.related("brokers", node.id, "partition-replicas"),
    }
    return links.resource(
        "KafkaBroker", links.url("brokers", node.id), links.name(("broker", node.id)), fields
    )

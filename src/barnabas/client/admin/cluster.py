"""The cluster itself: its id, brokers and controllers, the APIs of each broker, log dirs, and the quorum.

In: a Cluster. Out: frozen values. Works through a broker, and where Kafka allows it through a controller.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import ClientError, UnsupportedApi, check
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.client.core.versions import ApiRanges
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

METADATA_TOPIC = "__cluster_metadata"


class EndpointType(IntEnum):
    BROKER = 1
    CONTROLLER = 2


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    path: str
    error_code: int
    total_bytes: int
    usable_bytes: int
    replicas: dict[TopicPartition, ReplicaLog]


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@dataclass(frozen=True, slots=True)
class Quorum:
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[str, ...]]


class ClusterAdmin(AdminPart):
    async def describe_cluster(
        self, endpoints: EndpointType = EndpointType.BROKER, *, fenced: bool = False
    ) -> ClusterDescription:
        """Nodes in the order of their ids."""
        connection = await self.cluster.any_connection()
        try:
            version = connection.version_for(DescribeClusterRequest)
        except UnsupportedApi:
            topology = await self.cluster.refresh()
            nodes = tuple(node for _, node in sorted(topology.nodes.items()))
            return ClusterDescription(topology.cluster_id, topology.controller_id, nodes)
        request = DescribeClusterRequest(endpoint_type=endpoints, include_fenced_brokers=fenced)
        response = await connection.send(request, DescribeClusterResponse, version=version)
        check(response.error_code, response.error_message)
        brokers = sorted(response.brokers, key=lambda each: each.broker_id)
        described = tuple(
            Node(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in brokers
        )
        return ClusterDescription(response.cluster_id, response.controller_id, described)

    async def unregister_broker(self, broker_id: int) -> None:
        request = UnregisterBrokerRequest(broker_id=broker_id)
        response = await self.cluster.ask(request, UnregisterBrokerResponse)
        check(response.error_code, response.error_message)

    async def api_versions(self, node: Node) -> ApiRanges:
        return (await self.cluster.connection_to(node.address)).versions

    async def describe_log_dirs(self, nodes: Iterable[Node]) -> dict[int, list[LogDir]]:
        """The content of each log dir of each broker."""
        found = {}
        for node in nodes:
            response = await self.cluster.ask_node(
                node, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse
            )
            check(response.error_code)
            found[node.id] = [
                LogDir(
                    result.log_dir,
                    result.error_code,
                    result.total_bytes,
                    result.usable_bytes,
                    {
                        TopicPartition(topic.name, each.partition_index): ReplicaLog(
                            each.partition_size, each.offset_lag, each.is_future_key
                        )
                        for topic in result.topics
                        for each in topic.partitions
                    },
                )
                for result in response.results
            ]
        return found

    async def describe_quorum(self, purpose: str = "") -> Quorum:
        """The metadata quorum as its leader sees it. A broker holds the request back while the quorum has no
        leader, and all that come behind it: with a `purpose` it goes once, by a connection of its own."""
        nested = DescribeQuorumRequest.TopicData
        asked = nested(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
        request = DescribeQuorumRequest(topics=[asked])
        if purpose:
            address = (await self.cluster.any_connection()).address
            connection = await self.cluster.connection_to(address, purpose)
            response = await connection.send(request, DescribeQuorumResponse)
            check(response.error_code, response.error_message)
        else:
            response = await self.ask(request, DescribeQuorumResponse)
        if not response.topics or not response.topics[0].partitions:
            raise ClientError("the response about the metadata quorum is empty")
        partition = response.topics[0].partitions[0]
        check(partition.error_code, partition.error_message)
        endpoints = {
            node.node_id: tuple(f"{each.name}://{each.host}:{each.port}" for each in node.listeners)
            for node in response.nodes
        }
        return Quorum(
            partition.leader_id,
            partition.leader_epoch,
            partition.high_watermark,
            tuple(map(replica_of, partition.current_voters)),
            tuple(map(replica_of, partition.observers)),
            endpoints,
        )


def replica_of(state: DescribeQuorumResponse.ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )

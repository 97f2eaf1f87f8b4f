"""DescribeCluster: the brokers or controllers of the cluster and its id."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int8, Int16, Int32, String


class DescribeClusterRequest(Message, key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = since("1+", 1)
    include_fenced_brokers: Bool = since("2+", False)


class DescribeClusterResponse(Message, key=60, versions="0-2", flexible="0+"):
    class DescribeClusterBroker(Struct):
        broker_id: Int32 = 0
        host: String = ""
        port: Int32 = 0
        rack: String | None = None
        is_fenced: Bool = since("2+", False)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Int8 = since("1+", 1)
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = -(2**31)

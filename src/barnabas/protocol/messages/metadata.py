"""Metadata: brokers, topics, partitions and their leaders."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int16, Int32, String, Uuid


class MetadataRequest(Message, key=3, versions="0-13", flexible="9+"):
    class MetadataRequestTopic(Struct):
        topic_id: Uuid = since("10+", NULL_UUID, ignorable=True)
        name: String | None = since("0+", "", nullable="10+")

    topics: list[MetadataRequestTopic] | None = since("0+", [], nullable="1+")
    allow_auto_topic_creation: Bool = since("4+", True)
    include_cluster_authorized_operations: Bool = since("8-10", False)
    include_topic_authorized_operations: Bool = since("8+", False)


class MetadataResponse(Message, key=3, versions="0-13", flexible="9+"):
    class MetadataResponseBroker(Struct):
        node_id: Int32 = 0
        host: String = ""
        port: Int32 = 0
        rack: String | None = since("1+", None, ignorable=True)

    class MetadataResponseTopic(Struct):
        class MetadataResponsePartition(Struct):
            error_code: Int16 = 0
            partition_index: Int32 = 0
            leader_id: Int32 = 0
            leader_epoch: Int32 = since("7+", -1, ignorable=True)
            replica_nodes: list[Int32] = []
            isr_nodes: list[Int32] = []
            offline_replicas: list[Int32] = since("5+", [], ignorable=True)

        error_code: Int16 = 0
        name: String | None = since("0+", "", nullable="12+")
        topic_id: Uuid = since("10+", NULL_UUID, ignorable=True)
        is_internal: Bool = since("1+", False, ignorable=True)
        partitions: list[MetadataResponsePartition] = []
        topic_authorized_operations: Int32 = since("8+", -(2**31))

    throttle_time_ms: Int32 = since("3+", 0, ignorable=True)
    brokers: list[MetadataResponseBroker] = []
    cluster_id: String | None = since("2+", None, ignorable=True)
    controller_id: Int32 = since("1+", -1, ignorable=True)
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Int32 = since("8-10", -(2**31))
    error_code: Int16 = since("13+", 0, ignorable=True)

"""Requests of our own for `record_golden`: all versions of the common APIs, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.protocol import Message
from barnabas.protocol.apis import APIS, response_header_version
from barnabas.protocol.headers import ResponseHeader
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest

TOPIC = "golden"
GROUP = "golden-group"

Ask = Callable[[Message, int], bytes]
Build = Callable[[int], Message]


def requests(ask: Ask, batch: bytes) -> None:
    """Ask everything in every version that is announced."""
    first(ask)
    topic_id = id_of_topic(ask)
    for key, build in builders(topic_id, batch).items():
        for version in APIS[key].versions:
            ask(build(version), version)


def first(ask: Ask) -> None:
    for version in APIS[19].versions:
        Topic = CreateTopicsRequest.CreatableTopic
        name = TOPIC if version == 7 else f"{TOPIC}-{version}"
        config = Topic.CreatableTopicConfig(name="retention.ms", value="-1")
        topic = Topic(name=name, num_partitions=2, replication_factor=1, configs=[config])
        ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), version)
    for version in APIS[20].versions:
        Name = DeleteTopicsRequest.DeleteTopicState
        by_name = (
            {"topic_names": [f"{TOPIC}-{version}"]} if version < 6 else {"topics": [Name(name=f"{TOPIC}-6")]}
        )
        ask(DeleteTopicsRequest(timeout_ms=10_000, **by_name), version)  # type: ignore[arg-type]


def id_of_topic(ask: Ask) -> bytes:
    """The id of the topic, once its partitions have leaders."""
    while True:
        answer = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)]), 12)
        header = ResponseHeader(correlation_id=13).encode(response_header_version(3, 12))
        [topic] = MetadataResponse.decode(answer[len(header) :], 12).topics
        if topic.error_code == 0 and all(partition.error_code == 0 for partition in topic.partitions):
            return topic.topic_id


def builders(topic_id: bytes, batch: bytes) -> dict[int, Build]:
    """A request of each API for a version, in an order that makes sense to a broker."""
    builds = [
        lambda v: ApiVersionsRequest(
            **({"client_software_name": "golden", "client_software_version": "1"} if v > 2 else {})  # type: ignore[arg-type]
        ),
        lambda v: DescribeClusterRequest(include_cluster_authorized_operations=True),
        lambda v: metadata(v, topic_id),
        lambda v: produce(v, topic_id, batch),
        lambda v: fetch(v, topic_id),
        list_offsets,
        find_coordinator,
        lambda v: InitProducerIdRequest(
            transactional_id="golden-tx" if v else None, transaction_timeout_ms=60_000
        ),
        join_group,
        lambda v: SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="nobody"),
        lambda v: HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="nobody"),
        leave_group,
        lambda v: offset_commit(v, topic_id),
        lambda v: offset_fetch(v, topic_id),
        lambda v: DescribeGroupsRequest(groups=[GROUP, "rd-consumer"]),
        lambda v: ListGroupsRequest(),
        describe_configs,
        lambda v: DescribeLogDirsRequest(
            topics=[DescribeLogDirsRequest.DescribableLogDirTopic(topic=TOPIC, partitions=[0])]
        ),
        lambda v: DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])]
        ),
        lambda v: DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequest.TopicData(
                    topic_name="__cluster_metadata",
                    partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)],
                )
            ]
        ),
        lambda v: DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=TOPIC)], response_partition_limit=1
        ),
        lambda v: DescribeTransactionsRequest(transactional_ids=["rd-tx", "golden-tx"]),
        lambda v: ListTransactionsRequest(),
        lambda v: ListConfigResourcesRequest(),
        lambda v: ElectLeadersRequest(
            topic_partitions=[ElectLeadersRequest.TopicPartitions(topic=TOPIC, partitions=[0])]
        ),
        lambda v: AddOffsetsToTxnRequest(transactional_id="golden-tx", producer_id=1, group_id=GROUP),
        offset_for_leader_epoch,
    ]
    return {key_of(build): build for build in builds}


def key_of(build: Build) -> int:
    key = build(1).schema.key
    assert key is not None
    return key


def metadata(version: int, topic_id: bytes) -> Message:
    Topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=[Topic(name=TOPIC), Topic(name="not-there")]
        if version < 12
        else [Topic(topic_id=topic_id, name=None)],
        allow_auto_topic_creation=version < 4,
    )


def produce(version: int, topic_id: bytes, batch: bytes) -> Message:
    Topic = ProduceRequest.TopicProduceData
    partitions = [Topic.PartitionProduceData(index=0, records=batch)]
    topic = Topic(name=TOPIC, topic_id=topic_id, partition_data=partitions)
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def fetch(version: int, topic_id: bytes) -> Message:
    Topic = FetchRequest.FetchTopic
    partition = Topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    name = {"topic": TOPIC} if version < 13 else {"topic_id": topic_id}
    topic = Topic(**name, partitions=[partition])  # type: ignore[arg-type]
    return FetchRequest(max_wait_ms=10, max_bytes=1000, topics=[topic])


def list_offsets(version: int) -> Message:
    Topic = ListOffsetsRequest.ListOffsetsTopic
    partition = Topic.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[Topic(name=TOPIC, partitions=[partition])])


def find_coordinator(version: int) -> Message:
    return (
        FindCoordinatorRequest(coordinator_keys=[GROUP]) if version > 3 else FindCoordinatorRequest(key=GROUP)
    )


def join_group(version: int) -> Message:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
    return JoinGroupRequest(
        group_id=f"{GROUP}-{version}",
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        protocol_type="consumer",
        protocols=[protocol],
    )


def leave_group(version: int) -> Message:
    if version < 3:
        return LeaveGroupRequest(group_id=GROUP, member_id="nobody")
    return LeaveGroupRequest(group_id=GROUP, members=[LeaveGroupRequest.MemberIdentity(member_id="nobody")])


def offset_commit(version: int, topic_id: bytes) -> Message:
    Topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = Topic(name=TOPIC, topic_id=topic_id, partitions=[partition])
    return OffsetCommitRequest(group_id=GROUP, topics=[topic])


def offset_fetch(version: int, topic_id: bytes) -> Message:
    if version < 8:
        Topic = OffsetFetchRequest.OffsetFetchRequestTopic
        return OffsetFetchRequest(group_id=GROUP, topics=[Topic(name=TOPIC, partition_indexes=[0])])
    Group = OffsetFetchRequest.OffsetFetchRequestGroup
    topic = Group.OffsetFetchRequestTopics(name=TOPIC, topic_id=topic_id, partition_indexes=[0])
    return OffsetFetchRequest(groups=[Group(group_id=GROUP, topics=[topic])])


def describe_configs(version: int) -> Message:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    resource = Resource(
        resource_type=2, resource_name=TOPIC, configuration_keys=["retention.ms", "segment.bytes"]
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


def offset_for_leader_epoch(version: int) -> Message:
    Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition = Topic.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(topics=[Topic(topic=TOPIC, partitions=[partition])])

"""Routing of requests: the leader of a partition, the coordinator of a group or of a transactional id, or any
broker; and whether a response shows that the request went to the wrong one.

In: messages. Out: a `Target`, error codes, leaders that a response names (KIP-951).
Does not know: addresses, connections, retries.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.message import Struct
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class Role(Enum):
    LEADER = "leader"
    GROUP = "group coordinator"
    TRANSACTION = "transaction coordinator"
    ANY = "any"


class Target(NamedTuple):
    role: Role
    name: str = ""  # a topic, a group, a transactional id
    partition: int = -1


ANY = Target(Role.ANY)
OF_A_GROUP = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    ConsumerGroupHeartbeatRequest,
    TxnOffsetCommitRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
OF_A_TRANSACTION = (AddOffsetsToTxnRequest, EndTxnRequest)
# After these errors the client looks for the right broker before it tries again.
LOST_THE_WAY = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,  # perhaps from a leader that was replaced and does not know it yet
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)


def target_of(request: Message) -> Target:
    if isinstance(request, ProduceRequest):
        data = request.topic_data[0]
        return Target(Role.LEADER, data.name, data.partition_data[0].index)
    if isinstance(request, FetchRequest):
        topic = request.topics[0]
        return Target(Role.LEADER, topic.topic, topic.partitions[0].partition)
    if isinstance(request, OF_A_GROUP):
        return Target(Role.GROUP, request.group_id)
    if isinstance(request, OffsetFetchRequest | DescribeShareGroupOffsetsRequest):
        return Target(Role.GROUP, request.groups[0].group_id)
    if isinstance(request, OF_A_TRANSACTION):
        return Target(Role.TRANSACTION, request.transactional_id)
    if isinstance(request, AddPartitionsToTxnRequest):
        return Target(Role.TRANSACTION, request.v3_and_below_transactional_id)
    if isinstance(request, InitProducerIdRequest) and request.transactional_id is not None:
        return Target(Role.TRANSACTION, request.transactional_id)
    return ANY


def needs_new_route(response: Message) -> bool:
    return any(code in LOST_THE_WAY for code in codes_in(response))


def codes_in(response: Struct) -> Iterator[int]:
    """All error codes of a response, at any depth."""
    for field in response.schema.fields:
        value: Any = getattr(response, field.name)
        if field.name in ("error_code", "partition_error_code"):
            yield value
        elif isinstance(value, Struct):
            yield from codes_in(value)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Struct):
                    yield from codes_in(each)


def hint_in(response: Message) -> tuple[int, int] | None:
    """The leader and leader epoch that an error response names, or None."""
    for topic in getattr(response, "responses", ()):
        parts: list[Any] = getattr(topic, "partition_responses", None) or getattr(topic, "partitions", [])
        for part in parts:
            leader = getattr(part, "current_leader", None)
            if leader is not None and leader.leader_id >= 0:
                return leader.leader_id, leader.leader_epoch
    return None

"""Validates a ConsumerGroupHeartbeat before its group is looked up.

In: a request and its version. Out: nothing, or KafkaError with Apache Kafka's messages.
Does not know: groups, members.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.groups.basics.request_checks import not_empty, refuse
from barnabas.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    NO_TIMEOUT_MS,
    STATIC_LEAVING_EPOCH,
)
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

VERSION_WITH_CLIENT_MADE_IDS = 1


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    epoch = request.member_epoch
    if version >= VERSION_WITH_CLIENT_MADE_IDS or epoch > 0 or epoch == LEAVING_EPOCH:
        not_empty(request.member_id, "MemberId")
    not_empty(request.group_id, "GroupId")
    not_empty(request.instance_id, "InstanceId")
    not_empty(request.rack_id, "RackId")
    if epoch == JOINING_EPOCH:
        check_joining(request)
    elif epoch == STATIC_LEAVING_EPOCH:
        if request.instance_id is None:
            refuse("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        refuse("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT_MS:
        refuse("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        refuse("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        refuse("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")

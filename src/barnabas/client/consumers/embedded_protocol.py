"""Metadata and assignments of the protocol type "consumer", as all of Kafka's clients write them.

In: topics or partitions. Out: bytes, and back. Each begins with a version, which the reader may not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from barnabas.client.core.topology import TopicPartition, by_topic
from barnabas.protocol import ErrorCode, KafkaError, Message, ProtocolError
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

VERSION = 1  # newer ones tell what only cooperative assignors need
VERSION_BYTES = 2
VERSION_MAX = 3

M = TypeVar("M", bound=Message)


def subscription_bytes(topics: Iterable[str]) -> bytes:
    return with_version(ConsumerProtocolSubscription(topics=sorted(topics)))


def subscribed_topics(data: bytes) -> frozenset[str]:
    return frozenset(read(data, ConsumerProtocolSubscription).topics)


def assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    assigned = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[each.partition for each in some])
        for topic, some in by_topic(partitions).items()
    ]
    return with_version(ConsumerProtocolAssignment(assigned_partitions=assigned))


def assigned_partitions(data: bytes) -> list[TopicPartition]:
    if not data:  # a leader need not assign anything to a member
        return []
    return [
        TopicPartition(each.topic, index)
        for each in read(data, ConsumerProtocolAssignment).assigned_partitions
        for index in each.partitions
    ]


def with_version(message: Message) -> bytes:
    return VERSION.to_bytes(VERSION_BYTES, "big") + message.encode(VERSION)


def read(data: bytes, kind: type[M]) -> M:
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    reason = "its version is missing"
    if len(data) >= VERSION_BYTES and version >= 0:
        try:
            return kind.decode(data[VERSION_BYTES:], min(version, VERSION_MAX))
        except ProtocolError as error:
            reason = str(error)
    text = f"a member of the group sent a {kind.__name__} that cannot be read: {reason}"
    raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)

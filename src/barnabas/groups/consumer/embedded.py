"""The consumer protocol that classic members embed in their metadata: subscriptions and assignments.

In: bytes as members sent them, or partitions by topic id. Out: messages with ids, or bytes. Raises
ProtocolError for other bytes: members of a classic group may send anything.
Does not know: groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.groups.consumer.reconciliation import Reported
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ProtocolError
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

VERSION_SIZE = 2
VERSION_MAX = 3  # of both; newer versions are read as this one

Partitions = dict[bytes, frozenset[int]]


def version_of(data: bytes) -> int:
    if len(data) < VERSION_SIZE:
        raise ProtocolError("version", "the two bytes of the version are missing")
    version = int.from_bytes(data[:VERSION_SIZE], "big", signed=True)
    if version < 0:
        raise ProtocolError("version", f"{version} is no version of the consumer protocol")
    return min(version, VERSION_MAX)


def subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    return ConsumerProtocolSubscription.decode(metadata[VERSION_SIZE:], version_of(metadata))


def owned(of: ConsumerProtocolSubscription, image: MetadataImage) -> Reported:
    """The partitions that a member owns when it joins. Unknown topics are left out."""
    return by_id(((topic.topic, topic.partitions) for topic in of.owned_partitions), image)


def assignment(data: bytes) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment.decode(data[VERSION_SIZE:], version_of(data))


def assigned(of: ConsumerProtocolAssignment, image: MetadataImage) -> Partitions:
    return by_id(((topic.topic, topic.partitions) for topic in of.assigned_partitions), image)


def by_id(topics: Iterable[tuple[str, list[int]]], image: MetadataImage) -> Partitions:
    by_name = image.topics.by_name
    found: Partitions = {}
    for name, partitions in topics:
        if name in by_name and partitions:
            topic_id = by_name[name].id
            found[topic_id] = found.get(topic_id, frozenset()).union(partitions)
    return found


def assignment_bytes(
    partitions: Mapping[bytes, Iterable[int]], metadata: bytes, image: MetadataImage
) -> bytes:
    """Encode an assignment in the version of the member's own metadata."""
    version = version_of(metadata)
    known = image.topics.by_id
    named = {known[id].name: sorted(numbers) for id, numbers in partitions.items() if id in known}
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=named[name])
            for name in sorted(named)
        ]
    )
    return version.to_bytes(VERSION_SIZE, "big") + message.encode(version)

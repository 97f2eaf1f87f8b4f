"""The records of consumer groups, with the content that Apache Kafka 4.3.1 writes.

In: members and assignments. Out: entries for `__consumer_offsets`. Topics are sorted by id and partitions by
number, so that equal states give equal bytes.
Does not know: when to write what.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.assignors.spec import Assignment
from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer.member import ClassicMemberMetadata, ConsumerMember, Owned, RecordedPartitions
from barnabas.protocol.log_records import consumer_offsets as log

Target = log.ConsumerGroupTargetAssignmentMemberValue


def epoch(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    value = log.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Entry(log.ConsumerGroupMetadataKey(group_id=group_id), value)


def no_epoch(group_id: str) -> Entry:
    return Entry(log.ConsumerGroupMetadataKey(group_id=group_id), None)


def no_partition_metadata(group_id: str) -> Entry:
    """Delete the record that versions before 4.1 wrote; since then a group keeps a hash of its topics."""
    return Entry(log.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member(group_id: str, of: ConsumerMember) -> Entry:
    classic = None
    if of.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=of.classic.session_timeout_ms,
            supported_protocols=[
                ClassicMemberMetadata.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in of.classic.protocols
            ],
        )
    value = log.ConsumerGroupMemberMetadataValue(
        instance_id=of.instance_id,
        rack_id=of.rack_id,
        client_id=of.client_id,
        client_host=of.client_host,
        subscribed_topic_names=sorted(of.topics),
        subscribed_topic_regex=of.regex,
        rebalance_timeout_ms=of.rebalance_timeout_ms,
        server_assignor=of.assignor,
        classic_member_metadata=classic,
    )
    return Entry(log.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=of.member_id), value)


def no_member(group_id: str, member_id: str) -> Entry:
    return Entry(log.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target(group_id: str, member_id: str, assignment: Assignment) -> Entry:
    value = Target(
        topic_partitions=[
            Target.TopicPartition(topic_id=topic_id, partitions=sorted(assignment[topic_id]))
            for topic_id in sorted(assignment)
        ]
    )
    return Entry(log.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def no_target(group_id: str, member_id: str) -> Entry:
    return Entry(log.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Entry:
    value = log.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return Entry(log.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def no_target_epoch(group_id: str) -> Entry:
    return Entry(log.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def current(group_id: str, of: ConsumerMember) -> Entry:
    value = log.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=of.epoch,
        previous_member_epoch=of.previous_epoch,
        state=int(of.state),
        assigned_partitions=recorded(of.assigned),
        partitions_pending_revocation=recorded(of.revoking),
    )
    key = log.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=of.member_id)
    return Entry(key, value)


def no_current(group_id: str, member_id: str) -> Entry:
    return Entry(log.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def regex(group_id: str, pattern: str, topics: Iterable[str], version: int, timestamp_ms: int) -> Entry:
    value = log.ConsumerGroupRegularExpressionValue(
        topics=sorted(topics), version=version, timestamp=timestamp_ms
    )
    return Entry(log.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def no_regex(group_id: str, pattern: str) -> Entry:
    return Entry(log.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Delete a member. Its assignments come first, as Apache Kafka's replay requires."""
    return [no_current(group_id, member_id), no_target(group_id, member_id), no_member(group_id, member_id)]


def recorded(partitions: Owned) -> list[RecordedPartitions]:
    found = []
    for topic_id in sorted(partitions):
        numbers = sorted(partitions[topic_id])
        epochs = [partitions[topic_id][number] for number in numbers]
        found.append(RecordedPartitions(topic_id=topic_id, partitions=numbers, assignment_epochs=epochs))
    return found

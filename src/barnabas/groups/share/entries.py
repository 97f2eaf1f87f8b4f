"""The records of share groups, with the content that Apache Kafka 4.3.1 writes.

In: members, assignments, partitions with state. Out: entries for `__consumer_offsets`. Topics are sorted by
id and partitions by number, so that equal states give equal bytes.
Does not know: when to write what.
"""

from __future__ import annotations

from barnabas.groups.assignors.spec import Assignment
from barnabas.groups.basics.records import Entry
from barnabas.groups.share.member import ShareMember
from barnabas.groups.share.state_partitions import StatePartitions, Topics, topic_name
from barnabas.metadata.topics import TopicsImage
from barnabas.protocol.log_records import consumer_offsets as log

Target = log.ShareGroupTargetAssignmentMemberValue
Current = log.ShareGroupCurrentMemberAssignmentValue
States = log.ShareGroupStatePartitionMetadataValue


def epoch(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    value = log.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Entry(log.ShareGroupMetadataKey(group_id=group_id), value)


def no_epoch(group_id: str) -> Entry:
    return Entry(log.ShareGroupMetadataKey(group_id=group_id), None)


def member(group_id: str, of: ShareMember) -> Entry:
    value = log.ShareGroupMemberMetadataValue(
        rack_id=of.rack_id,
        client_id=of.client_id,
        client_host=of.client_host,
        subscribed_topic_names=sorted(of.topics),
    )
    return Entry(log.ShareGroupMemberMetadataKey(group_id=group_id, member_id=of.member_id), value)


def no_member(group_id: str, member_id: str) -> Entry:
    return Entry(log.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target(group_id: str, member_id: str, assignment: Assignment) -> Entry:
    value = Target(
        topic_partitions=[
            Target.TopicPartition(topic_id=topic_id, partitions=sorted(assignment[topic_id]))
            for topic_id in sorted(assignment)
        ]
    )
    return Entry(log.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def no_target(group_id: str, member_id: str) -> Entry:
    return Entry(log.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Entry:
    value = log.ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return Entry(log.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def no_target_epoch(group_id: str) -> Entry:
    return Entry(log.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def current(group_id: str, of: ShareMember) -> Entry:
    value = Current(
        member_epoch=of.epoch,
        previous_member_epoch=of.previous_epoch,
        state=of.state,
        assigned_partitions=[
            Current.TopicPartitions(topic_id=topic_id, partitions=sorted(of.assigned[topic_id]))
            for topic_id in sorted(of.assigned)
        ],
    )
    return Entry(log.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=of.member_id), value)


def no_current(group_id: str, member_id: str) -> Entry:
    return Entry(log.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def states(group_id: str, of: StatePartitions, topics: TopicsImage) -> Entry:
    value = States(
        initializing_topics=recorded(of.initializing),
        initialized_topics=recorded(of.initialized),
        deleting_topics=[
            States.TopicInfo(topic_id=topic_id, topic_name=topic_name(topic_id, topics))
            for topic_id in sorted(of.deleting)
        ],
    )
    return Entry(log.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def no_states(group_id: str) -> Entry:
    return Entry(log.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)


def recorded(topics: Topics) -> list[States.TopicPartitionsInfo]:
    return [
        States.TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=topics[topic_id].name,
            partitions=sorted(topics[topic_id].partitions),
        )
        for topic_id in sorted(topics)
    ]


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Delete a member. Its assignments come first, as Apache Kafka's replay requires."""
    return [no_current(group_id, member_id), no_target(group_id, member_id), no_member(group_id, member_id)]

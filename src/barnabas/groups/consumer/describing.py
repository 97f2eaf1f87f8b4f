"""Consumer groups as ConsumerGroupDescribe and ListGroups show them.

In: a group, and metadata for topic names. Out: parts of responses.
Does not know: authorization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse as Response
from barnabas.protocol.messages.list_groups import ListGroupsResponse

GROUP_TYPE = "consumer"
PROTOCOL_TYPE = "consumer"
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1

DescribedGroup = Response.DescribedGroup


def described(group: ConsumerGroup, default_assignor: str, image: MetadataImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[described_member(group, member, image) for member in group.members.values()],
    )


def described_member(
    group: ConsumerGroup, member: ConsumerMember, image: MetadataImage
) -> DescribedGroup.Member:
    held = {topic_id: set(partitions) for topic_id, partitions in member.assigned.items()}
    for topic_id, partitions in member.revoking.items():
        held.setdefault(topic_id, set()).update(partitions)
    return DescribedGroup.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=assignment(held, image),
        target_assignment=assignment(group.target.get(member.member_id, {}), image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def assignment(partitions: Mapping[bytes, Iterable[int]], image: MetadataImage) -> Response.Assignment:
    """Partitions with their topics' names. Deleted topics are left out."""
    by_id = image.topics.by_id
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(
                topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=sorted(partitions[topic_id])
            )
            for topic_id in sorted(partitions)
            if topic_id in by_id
        ]
    )


def not_found(group_id: str, is_other_kind: bool) -> DescribedGroup:
    message = (
        f"Group {group_id} is not a consumer group." if is_other_kind else f"Group {group_id} not found."
    )
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)


def listed(group: ConsumerGroup) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=group.group_id,
        protocol_type=PROTOCOL_TYPE,
        group_state=group.state,
        group_type=GROUP_TYPE,
    )

"""Share groups as ShareGroupDescribe and ListGroups show them.

In: a group, and metadata for topic names. Out: parts of responses.
Does not know: authorization.
"""

from __future__ import annotations

from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.member import ShareMember
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.list_groups import ListGroupsResponse
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeResponse as Response

GROUP_TYPE = "share"
PROTOCOL_TYPE = "share"

DescribedGroup = Response.DescribedGroup


def described(group: ShareGroup, assignor: str, image: MetadataImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[described_member(member, image) for member in group.members.values()],
    )


def described_member(member: ShareMember, image: MetadataImage) -> DescribedGroup.Member:
    """A member. Topics that were deleted are left out of its assignment."""
    by_id = image.topics.by_id
    return DescribedGroup.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=Response.Assignment(
            topic_partitions=[
                Response.TopicPartitions(
                    topic_id=topic_id,
                    topic_name=by_id[topic_id].name,
                    partitions=sorted(member.assigned[topic_id]),
                )
                for topic_id in sorted(member.assigned)
                if topic_id in by_id
            ]
        ),
    )


def not_found(group_id: str, is_other_kind: bool) -> DescribedGroup:
    message = f"Group {group_id} is not a share group." if is_other_kind else f"Group {group_id} not found."
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)


def listed(group: ShareGroup) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=group.group_id,
        protocol_type=PROTOCOL_TYPE,
        group_state=group.state,
        group_type=GROUP_TYPE,
    )

"""Whether a member of a consumer group may commit or fetch offsets in the epoch that it names.

In: a group, a member's id and epoch. Out: nothing, or KafkaError. A commit with an older epoch is checked per
partition: it is valid if the member has had the partition since that epoch or longer (KIP-1251).
Does not know: offsets.
"""

from __future__ import annotations

from barnabas.groups.basics.kind import PartitionCheck
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import ErrorCode, KafkaError

VERSION_WITH_MEMBER_EPOCHS = 9  # of OffsetCommit


def check_commit(
    group: ConsumerGroup, member_id: str, epoch: int, version: int | None
) -> PartitionCheck | None:
    """Raise KafkaError for the whole request. Returns a check for each partition, or None if all may be
    committed.
    `version` is that of OffsetCommit, None in transactions."""
    if epoch < 0 and not group.members:
        return None
    member = member_of(group, member_id)
    if not member.is_classic and version is not None and version < VERSION_WITH_MEMBER_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    if epoch == member.epoch:
        return None
    if epoch > member.epoch:
        word = "generation id" if member.is_classic else "member epoch"
        refuse(member, f"Received {word} {epoch} is newer than current member epoch {member.epoch}.")

    def check_partition(topic: TopicImage, partition: int) -> ErrorCode:
        since = member.assignment_epoch(topic.id, partition)
        return ErrorCode.NONE if since is not None and epoch >= since else epoch_error(member)

    return check_partition


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    if member_id is None and epoch < 0:
        return
    member = member_of(group, member_id)
    if epoch != member.epoch:
        word = "generation id" if member.is_classic else "member epoch"
        refuse(
            member, f"The received {word} {epoch} does not match the expected member epoch {member.epoch}."
        )


def member_of(group: ConsumerGroup, member_id: str | None) -> ConsumerMember:
    member = group.members.get(member_id or "")
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def refuse(member: ConsumerMember, message: str) -> None:
    raise KafkaError(epoch_error(member), message)


def epoch_error(member: ConsumerMember) -> ErrorCode:
    """The error for a wrong epoch in the member's own protocol."""
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH

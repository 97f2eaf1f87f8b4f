"""Whether a member of a streams group may commit or fetch offsets in the epoch that it names.

In: a group, a member's id and epoch. Out: nothing, or KafkaError. A commit with an older epoch is checked per
partition: it is valid if the member has run the task since that epoch or longer (KIP-1251).
Does not know: offsets.
"""

from __future__ import annotations

from barnabas.groups.basics.kind import PartitionCheck
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.joining import unknown_member
from barnabas.groups.streams.member import StreamsMember
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import ErrorCode, KafkaError

VERSION_WITH_MEMBER_EPOCHS = 9  # of OffsetCommit


def check_commit(
    group: StreamsGroup, member_id: str, epoch: int, version: int | None
) -> PartitionCheck | None:
    """Raise KafkaError for the whole request. Returns a check for each partition, or None if all may be
    committed. `version` is that of OffsetCommit, None in transactions."""
    if epoch < 0 and not group.members:
        return None
    member = member_of(group, member_id)
    if version is not None and version < VERSION_WITH_MEMBER_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group protocol",
        )
    if epoch == member.epoch:
        return None
    if epoch > member.epoch or group.topology is None:
        message = f"Received member epoch {epoch} is newer than current member epoch {member.epoch}."
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)
    sources = group.topology.sources

    def check_partition(topic: TopicImage, partition: int) -> ErrorCode:
        subtopology = sources.get(topic.name)
        since = None if subtopology is None else member.assignment_epoch(subtopology, partition)
        return ErrorCode.NONE if since is not None and epoch >= since else ErrorCode.STALE_MEMBER_EPOCH

    return check_partition


def check_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> None:
    if member_id is None and epoch < 0:
        return
    member = member_of(group, member_id)
    if epoch != member.epoch:
        message = (
            f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
        )
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)


def member_of(group: StreamsGroup, member_id: str | None) -> StreamsMember:
    member = group.members.get(member_id or "")
    if member is None:
        raise unknown_member(group, member_id)
    return member

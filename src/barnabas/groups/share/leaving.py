"""How members go: they leave, or are fenced for silence; and how a group without members is deleted.

In: a group and the members that go. Out: records. The group's epoch grows, so that others get the partitions.
Does not know: time, share coordinators.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.groups.basics.counts import add_all
from barnabas.groups.basics.records import Entry
from barnabas.groups.share import entries
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.member import ShareMember
from barnabas.groups.share.state import ShareState
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError


def find_leaver(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member


def remove(
    state: ShareState, group: ShareGroup, members: Sequence[ShareMember], image: MetadataImage
) -> list[Entry]:
    """Remove some members of a group, with one new epoch."""
    group_id = group.group_id
    records: list[Entry] = []
    topics = dict(group.topic_counts)
    for member in members:
        records.extend(entries.member_tombstones(group_id, member.member_id))
        add_all(topics, member.topics, -1)
    metadata_hash = state.hashes.of_group(topics, image)
    records.append(entries.epoch(group_id, group.epoch + 1, metadata_hash))
    for member in members:
        state.timers.cancel_all(group_id, member.member_id)
    return records


def tombstones(group: ShareGroup) -> list[Entry]:
    """The records that delete the group."""
    group_id = group.group_id
    return [
        *(entries.no_current(group_id, member_id) for member_id in group.members),
        *(entries.no_target(group_id, member_id) for member_id in group.members),
        entries.no_target_epoch(group_id),
        *(entries.no_member(group_id, member_id) for member_id in group.members),
        entries.no_states(group_id),
        entries.no_epoch(group_id),
    ]

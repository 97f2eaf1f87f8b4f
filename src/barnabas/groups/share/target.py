"""The target assignment of a share group: computed when the group's epoch has advanced.

In: a group, the member that changes it, metadata. Out: the records of the new targets and of their epoch.
Only initialized partitions are assigned.
Does not know: when a target is due (`heartbeat`).
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.groups.assignors.spec import (
    NO_PARTITIONS,
    Assignment,
    GroupSpec,
    MemberSpec,
    SteppingAssignor,
    TopicSpec,
)
from barnabas.groups.basics.records import Entry
from barnabas.groups.share import entries
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.member import ShareMember
from barnabas.groups.share.state import ShareState
from barnabas.groups.share.state_partitions import NO_STATE
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps

MEMBERS_PER_STEP = 50


@dataclass(frozen=True, slots=True)
class Target:
    epoch: int
    assignment: Assignment  # of the member that triggered it
    records: list[Entry]


def compute(
    state: ShareState, group: ShareGroup, epoch: int, member: ShareMember, clock: tuple[int, MetadataImage]
) -> Steps[Target]:
    """Compute a new target for all members, with `member` as it will be."""
    now_ms, image = clock
    members = {**group.members, member.member_id: member}
    spec = yield from spec_of(group, members, image)
    assert isinstance(state.assignor, SteppingAssignor)
    assigned = yield from state.assignor.assign_in_steps(spec)
    records = []
    for count, member_id in enumerate(sorted(members), 1):
        if count % MEMBERS_PER_STEP == 0:
            yield
        assignment = assigned.get(member_id, NO_PARTITIONS)
        if assignment != group.target.get(member_id):
            records.append(entries.target(group.group_id, member_id, assignment))
    records.append(entries.target_epoch(group.group_id, epoch, now_ms))
    return Target(epoch, assigned.get(member.member_id, NO_PARTITIONS), records)


def spec_of(group: ShareGroup, members: dict[str, ShareMember], image: MetadataImage) -> Steps[GroupSpec]:
    by_name = image.topics.by_name
    initialized = (group.states or NO_STATE).initialized
    subscriptions: dict[frozenset[str], frozenset[bytes]] = {}
    specs = {}
    topics: dict[bytes, TopicSpec] = {}
    for count, (member_id, member) in enumerate(members.items(), 1):
        if count % MEMBERS_PER_STEP == 0:
            yield
        topic_ids = subscriptions.get(member.topics)
        if topic_ids is None:
            found = [by_name[name] for name in sorted(member.topics) if name in by_name]
            topic_ids = subscriptions[member.topics] = frozenset(topic.id for topic in found)
            for topic in found:
                known = initialized.get(topic.id)
                ready = known.partitions if known is not None else frozenset()
                topics[topic.id] = TopicSpec(len(topic.partitions), assignable=ready)
        specs[member_id] = MemberSpec(
            topic_ids, rack_id=member.rack_id, assigned=group.target.get(member_id, NO_PARTITIONS)
        )
    return GroupSpec(specs, topics)

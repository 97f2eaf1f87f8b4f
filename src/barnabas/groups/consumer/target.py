"""The target assignment: computed by an assignor when the group's epoch has advanced.

In: a group, the member that changes it, metadata. Out: the records of the new targets and of their epoch.
Does not know: how members reach it (`reconciliation`), when it is due (`heartbeat`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.groups.assignors.spec import (
    NO_PARTITIONS,
    Assignment,
    Assignor,
    GroupSpec,
    MemberSpec,
    SteppingAssignor,
    TopicSpec,
)
from barnabas.groups.basics.metadata_hash import Racks
from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer import entries
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError

NO_RACKS: tuple[frozenset[str], ...] = ()
MEMBERS_PER_STEP = 50


@dataclass(frozen=True, slots=True)
class Target:
    epoch: int
    assignment: Assignment  # of the member that triggered it
    records: list[Entry]


def compute(
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerMember,
    assignor: Assignor,
    metadata: tuple[MetadataImage, Racks],
    now_ms: int,
) -> Steps[Target]:
    """Compute a new target for all members, with `member` as it will be."""
    members = members_with(group, member)
    spec = yield from spec_of(group, members, *metadata)
    try:
        if isinstance(assignor, SteppingAssignor):
            assigned = yield from assignor.assign_in_steps(spec)
        else:
            assigned = assignor.assign(spec)
    except Exception as error:  # an assignor may be a plugin: its errors must stay inside the request
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
    records = []
    for count, member_id in enumerate(sorted(members), 1):
        if count % MEMBERS_PER_STEP == 0:
            yield
        assignment = assigned.get(member_id, NO_PARTITIONS)
        if assignment != group.target.get(member_id):
            records.append(entries.target(group.group_id, member_id, assignment))
    records.append(entries.target_epoch(group.group_id, epoch, now_ms))
    return Target(epoch, assigned.get(member.member_id, NO_PARTITIONS), records)


def members_with(group: ConsumerGroup, member: ConsumerMember) -> dict[str, ConsumerMember]:
    """All members, with one changed or added. A static one replaces its previous incarnation."""
    members = dict(group.members)
    if member.instance_id is not None:
        members.pop(group.static_members.get(member.instance_id, ""), None)
    members[member.member_id] = member
    return members


def spec_of(
    group: ConsumerGroup, members: Mapping[str, ConsumerMember], image: MetadataImage, racks: Racks
) -> Steps[GroupSpec]:
    subscriptions: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}
    specs = {}
    for count, (member_id, member) in enumerate(members.items(), 1):
        if count % MEMBERS_PER_STEP == 0:
            yield
        key = (member.topics, member.regex)
        topic_ids = subscriptions.get(key)
        if topic_ids is None:
            topic_ids = subscriptions[key] = topic_ids_of(group, member, image)
        specs[member_id] = MemberSpec(
            topic_ids, member.instance_id, member.rack_id, group.target_of(member_id, member.instance_id)
        )
    by_id = image.topics.by_id
    topics: dict[bytes, TopicSpec] = {}
    for topic_ids in subscriptions.values():
        for topic_id in topic_ids:
            if topic_id not in topics:
                topic = by_id[topic_id]
                of_partitions = NO_RACKS
                if racks:
                    of_partitions = tuple(
                        frozenset(racks[replica] for replica in partition.replicas if replica in racks)
                        for _, partition in sorted(topic.partitions.items())
                    )
                topics[topic_id] = TopicSpec(len(topic.partitions), of_partitions)
                yield
    return GroupSpec(specs, topics)


def topic_ids_of(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> frozenset[bytes]:
    """The ids of the existing topics that a member reads."""
    by_name = image.topics.by_name
    names = member.topics
    resolved = group.resolved.get(member.regex) if member.regex else None
    if resolved is not None:
        names = names | resolved.topics
    return frozenset(by_name[name].id for name in names if name in by_name)

"""Conversion of live groups between the two protocols (KIP-848): classic to consumer, and back.

In: a group, metadata. Out: the same group as the other kind, and the records of the conversion. A group is
upgraded when the first member of the consumer protocol joins, and downgraded when the last one leaves.
Does not know: requests.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.rebalance import group_record, join_refusal, respond_to_join, respond_to_sync
from barnabas.groups.classic.states import STABLE
from barnabas.groups.consumer import embedded, entries
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.leaving import tombstones
from barnabas.groups.consumer.member import ClassicData, ConsumerMember
from barnabas.groups.consumer.state import ConsumerState, Due
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.sync_group import SyncGroupResponse

DISABLED = "disabled"
UPGRADES = ("bidirectional", "upgrade")
DOWNGRADES = ("bidirectional", "downgrade")


# Upgrade


def check_upgrade(state: ConsumerState, classic: ClassicGroup) -> None:
    settings = state.settings
    if settings.consumer_migration_policy not in UPGRADES:
        refuse_upgrade(classic, "online upgrade is disabled")
    if not classic.is_consumer_type:
        refuse_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.consumer_group_size_max:
        refuse_upgrade(classic, "the group size exceeds the consumer group maximum size")


def refuse_upgrade(classic: ClassicGroup, why: str) -> None:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def upgraded(
    state: ConsumerState, classic: ClassicGroup, image: MetadataImage
) -> tuple[ConsumerGroup, list[Entry]]:
    """Convert a classic group to a consumer group. Its members continue with the classic protocol."""
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = classic.generation
    try:
        for member in classic.members.values():
            add_classic_member(group, classic, member, image)
    except ProtocolError:
        refuse_upgrade(classic, "the embedded consumer protocol is malformed")
    group.metadata_hash = state.hashes.of_group(group.topic_counts, image)
    group_id, members = group.group_id, group.members
    records = [
        group_record(classic, None),
        *(entries.member(group_id, member) for member in members.values()),
        entries.epoch(group_id, group.epoch, group.metadata_hash),
        *(entries.target(group_id, member_id, group.target[member_id]) for member_id in members),
        entries.target_epoch(group_id, group.assignment_epoch, 0),
        *(entries.current(group_id, member) for member in members.values()),
    ]
    return group, records


def add_classic_member(
    group: ConsumerGroup, classic: ClassicGroup, member: ClassicMember, image: MetadataImage
) -> None:
    held: embedded.Partitions = {}
    if member.assignment:
        assignment = embedded.assignment(member.assignment)
        if assignment.user_data:
            refuse_upgrade(
                classic,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                "default assignor before re-attempting the upgrade",
            )
        held = embedded.assigned(assignment, image)
    metadata = member.metadata(classic.protocol) or member.protocols[0][1]
    subscription = embedded.subscription(metadata)
    epoch = classic.generation
    group.target[member.member_id] = held
    group.set_member(
        ConsumerMember(
            member.member_id,
            epoch=epoch,
            previous_epoch=epoch,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=frozenset(subscription.topics),
            assigned={topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in held.items()},
            classic=ClassicData(member.session_timeout_ms, member.protocols),
        )
    )


def finish_upgrade(state: ConsumerState, classic: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Answer the waiting requests of the classic group, so that its members rejoin. Their sessions are
    tracked here now."""
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.members.values():
        refusal = join_refusal(error, member.join_version, member.member_id)
        respond_to_join(classic, member, refusal, outcome)
        respond_to_sync(member, SyncGroupResponse(error_code=error), outcome)
        at_ms = now_ms + member.session_timeout_ms
        state.timers.set(Due.SESSION, classic.group_id, member.member_id, at_ms)


# Downgrade


def may_downgrade(state: ConsumerState, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
    """Whether only members of the classic protocol would remain, and at least one."""
    staying = len(group.members) - len(leaving)
    classic = group.classic_count - sum(member.is_classic for member in leaving)
    return (
        0 < staying <= state.settings.group_size_max
        and classic == staying
        and state.settings.consumer_migration_policy in DOWNGRADES
    )


def downgrade(
    state: ConsumerState,
    classic: ClassicGroups,
    group: ConsumerGroup,
    members: list[ConsumerMember],
    image: MetadataImage,
    now_ms: int,
    rebalances: bool,
) -> Outcome:
    """Convert the group to a classic one with these members.
    Each is recorded with the partitions it owns, not with its target as in Apache Kafka: if the group is
    upgraded again before all members have rejoined, no partition may get a second owner."""
    new = ClassicGroup(group.group_id, now_ms)
    new.generation = group.epoch
    for member in members:
        new.add(classic_member(member), CONSUMER_PROTOCOL_TYPE)
    new.protocol = new.select_protocol()
    new.state = STABLE
    for member in members:
        as_classic = new.members[member.member_id]
        as_classic.assignment = embedded.assignment_bytes(
            held_by(member), as_classic.metadata(new.protocol), image
        )
    assignments = {member_id: member.assignment for member_id, member in new.members.items()}
    outcome = Outcome(records=[*tombstones(group), group_record(new, new.value(assignments))])
    classic.adopt(new, outcome, now_ms, rebalances=rebalances)
    for member_id in group.members:
        state.timers.cancel_all(group.group_id, member_id)
    return outcome


def held_by(member: ConsumerMember) -> dict[bytes, set[int]]:
    """The partitions that a member may be reading, including those that it is asked to revoke."""
    held = {topic_id: set(partitions) for topic_id, partitions in member.assigned.items()}
    for topic_id, partitions in member.revoking.items():
        held.setdefault(topic_id, set()).update(partitions)
    return held


def has_reconciled(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a member owns exactly its target."""
    target = group.target_of(member.member_id, member.instance_id)
    return held_by(member) == {topic_id: set(partitions) for topic_id, partitions in target.items()}


def classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        (member.client_id, member.client_host),
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )

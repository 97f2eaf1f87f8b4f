"""The decision about a member's heartbeat in a consumer group: its response and its records.

In: a request that passed `validation`. Out: an outcome. In order: find the member (`joining`), apply what it
changed, compute the group's epoch, compute a target if one is due (`target`), move the member towards it.
Most heartbeats change nothing: they get their response at once.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.groups.basics.assignment_interval import is_target_due
from barnabas.groups.basics.member_ids import Rng
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.consumer import entries, regexes, target
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.joining import check_size, dynamic_member, static_member
from barnabas.groups.consumer.member import (
    JOINING_EPOCH,
    NO_TIMEOUT_MS,
    ConsumerMember,
    MemberState,
    Owned,
)
from barnabas.groups.consumer.reconciliation import Goal, Reported, reconcile
from barnabas.groups.consumer.regexes import Change
from barnabas.groups.consumer.state import ConsumerState, Due
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.uuid import to_text

Request = ConsumerGroupHeartbeatRequest
Response = ConsumerGroupHeartbeatResponse


def is_unchanged(group: ConsumerGroup, member: ConsumerMember, request: Request, caller: Caller) -> bool:
    """Whether the member has reached the target and reports nothing new."""
    return (
        request.member_epoch == member.epoch == group.assignment_epoch == group.epoch
        and member.state is MemberState.STABLE
        and request.rebalance_timeout_ms == NO_TIMEOUT_MS
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id == member.instance_id
        and group.metadata_is_fresh
        and not group.regex_counts
        and member.classic is None
        and caller.client_id == member.client_id
        and caller.client_host == member.client_host
    )


def respond_if_unchanged(
    state: ConsumerState, request: Request, caller: Caller, image: MetadataImage, now_ms: int
) -> Outcome | None:
    """The response to a heartbeat that changes nothing; None for all others."""
    group = state.groups.get(request.group_id)
    if group is None:
        return None
    member = group.members.get(request.member_id)
    if member is None or not is_unchanged(group, member, request, caller):
        return None
    return Outcome(reply=renew_and_respond(state, group, member, image, now_ms))


def renew_and_respond(
    state: ConsumerState, group: ConsumerGroup, member: ConsumerMember, image: MetadataImage, now_ms: int
) -> Response:
    """Renew the member's session, and return the minimal response."""
    times = state.times(group.group_id, image)
    state.timers.set(Due.SESSION, group.group_id, member.member_id, now_ms + times.session_timeout_ms)
    return Response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=times.heartbeat_interval_ms,
    )


def heartbeat(
    state: ConsumerState,
    group: ConsumerGroup,
    request: Request,
    caller: Caller,
    clock: tuple[int, MetadataImage],
) -> Steps[Outcome]:
    """Decide a heartbeat of an existing group, or of a new one that its first records create. In steps,
    because a new assignment of a thousand members takes long."""
    now_ms, image = clock
    check_size(group, request.member_id, state.settings.consumer_group_size_max)
    reported = reported_by(request)
    member_id = request.member_id or new_member_id(state.rng)
    records: list[Entry] = []
    if request.instance_id is None:
        before = dynamic_member(group, member_id, request.member_epoch, reported)
    else:
        before, records = static_member(group, member_id, request.instance_id, request.member_epoch, reported)
    after = with_request(before, request, caller)
    if after.regex and caller.may_describe is not None:
        state.viewers[group.group_id] = caller.may_describe
    after = yield from advance_member(state, group, before, after, reported, records, clock)
    reply = renew_and_respond(state, group, after, image, now_ms)
    if is_full(request) or after.assigned != before.assigned:
        reply.assignment = assignment_response(after.assigned)
    return Outcome(records=records, reply=reply)


def advance_member(
    state: ConsumerState,
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    reported: Reported | None,
    records: list[Entry],
    clock: tuple[int, MetadataImage],
) -> Steps[ConsumerMember]:
    """Record what is new about a member, and move it and its group as far as possible."""
    now_ms, image = clock
    names_changed = False
    if after != before:
        records.append(entries.member(group.group_id, after))
        names_changed = after.topics != before.topics
    change = regexes.update(state, group, before, after, records, now_ms)
    epoch = group.epoch
    bump = names_changed or change is Change.UPDATED_AND_RESOLVED
    if bump or not group.metadata_is_fresh:
        epoch = yield from refreshed_epoch(state, group, before, after, bump, records, image)
    goal = yield from goal_of(state, group, before, after, epoch, records, clock)
    moved = move(after, goal, reported, names_changed or change is not Change.NONE)
    group.metadata_is_fresh = True  # last, so that a failure above is retried
    if moved != after:
        records.append(entries.current(group.group_id, moved))
        watch_revocation(state, group.group_id, moved, now_ms)
    return moved


def refreshed_epoch(
    state: ConsumerState,
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    bump: bool,
    records: list[Entry],
    image: MetadataImage,
) -> Steps[int]:
    """The group's epoch after checking its topics: one higher if the topics or their subscribers changed."""
    topics = topics_after(group, before, after)
    metadata_hash = yield from state.hashes.of_group_in_steps(topics, image)
    epoch = group.epoch
    if bump or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(entries.epoch(group.group_id, epoch, metadata_hash))
    if group.has_partition_metadata:
        records.append(entries.no_partition_metadata(group.group_id))
    return epoch


def topics_after(group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> set[str]:
    """The topics that the group reads with `after` in the place of `before`."""
    dropped = {name for name in before.topics - after.topics if group.topic_counts.get(name) == 1}
    found = {*(group.topic_counts.keys() - dropped), *after.topics}
    found.update(group.topic_regex_counts)
    if before.regex and before.regex != after.regex and group.regex_counts.get(before.regex) == 1:
        resolved = group.resolved.get(before.regex)
        for name in resolved.topics if resolved is not None else ():
            if group.topic_regex_counts[name] == 1 and name not in group.topic_counts:
                found.discard(name)
        found |= after.topics
    return found


def goal_of(
    state: ConsumerState,
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    epoch: int,
    records: list[Entry],
    clock: tuple[int, MetadataImage],
) -> Steps[Goal]:
    """The member's goal: a new target if the group's epoch has advanced and the last target is old enough."""
    now_ms, image = clock
    by_id = image.topics.by_id
    resolved = group.resolved.get(after.regex) if after.regex else None
    topics = after.topics if resolved is None else after.topics | resolved.topics

    def reads(topic_id: bytes) -> bool:
        topic = by_id.get(topic_id)
        return topic is not None and topic.name in topics

    interval_ms = state.times(group.group_id, image).assignment_interval_ms
    last_ms = group.assignment_timestamp_ms
    if epoch > group.assignment_epoch and is_target_due(last_ms, interval_ms, now_ms):
        preferred = group.preferred_assignor(before, after)
        assignor = state.assignors.get(preferred or "") or state.assignors[state.default_assignor]
        metadata = (image, state.hashes.racks(image))
        computed = yield from target.compute(group, epoch, after, assignor, metadata, now_ms)
        records.extend(computed.records)
        return Goal(epoch, computed.assignment, reads, group.owner_epoch)
    assignment = group.target_of(after.member_id, after.instance_id)
    return Goal(group.assignment_epoch, assignment, reads, group.owner_epoch)


def move(
    member: ConsumerMember, goal: Goal, reported: Reported | None, subscription_changed: bool
) -> ConsumerMember:
    if not subscription_changed and member.is_reconciled_to(goal.epoch):
        return member
    return reconcile(member, goal, reported, subscription_changed)


def watch_revocation(state: ConsumerState, group_id: str, member: ConsumerMember, now_ms: int) -> None:
    """Limit the time of a revocation. Classic members have other timers."""
    if member.is_classic:
        return
    state.timers.cancel(Due.REBALANCE, group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        state.timers.set(Due.REBALANCE, group_id, member.member_id, now_ms + member.rebalance_timeout_ms)


def with_request(member: ConsumerMember, request: Request, caller: Caller) -> ConsumerMember:
    """The member with the request's values; absent fields stay as they were."""
    names = request.subscribed_topic_names
    topics = member.topics if names is None else frozenset(names)
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT_MS else timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=topics,
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def reported_by(request: Request) -> Reported | None:
    if request.topic_partitions is None:
        return None
    reported: dict[bytes, frozenset[int]] = {}
    for topic in request.topic_partitions:
        reported[topic.topic_id] = reported.get(topic.topic_id, frozenset()).union(topic.partitions)
    return reported


def is_full(request: Request) -> bool:
    """Whether the response must be complete: the member joins, or repeats everything after an error."""
    if request.member_epoch == JOINING_EPOCH:
        return True
    names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return (
        request.rebalance_timeout_ms != NO_TIMEOUT_MS
        and names_topics
        and request.topic_partitions is not None
    )


def assignment_response(assigned: Owned) -> Response.Assignment:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )


def new_member_id(rng: Rng) -> str:
    """A random id in Kafka's form, for clients of version 0, which do not make their own."""
    bits = rng.getrandbits(128) & ~(0xF << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62)
    text = to_text(bits.to_bytes(16, "big"))
    return text if not text.startswith("-") else "A" + text[1:]

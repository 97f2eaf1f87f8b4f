"""A heartbeat of a consumer group's member, from its request to what it hears and what is written down.

In: a request that `validation` let pass. Out: an outcome. In order: who is it (`joining`), what did it
change, has the group a new epoch, is a new target due (`target`), how far does the member get.
Most heartbeats change nothing: those are answered at the top.
"""

from __future__ import annotations

from dataclasses import replace

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


def is_quiet(group: ConsumerGroup, member: ConsumerMember, request: Request, caller: Caller) -> bool:
    """The member has arrived where all shall be, and says nothing new."""
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


def quiet(
    state: ConsumerState, request: Request, caller: Caller, image: MetadataImage, now_ms: int
) -> Outcome | None:
    """The answer to a heartbeat that changes nothing; None for all others."""
    group = state.groups.get(request.group_id)
    if group is None:
        return None
    member = group.members.get(request.member_id)
    if member is None or not is_quiet(group, member, request, caller):
        return None
    return Outcome(reply=alive(state, group, member, image, now_ms))


def alive(
    state: ConsumerState, group: ConsumerGroup, member: ConsumerMember, image: MetadataImage, now_ms: int
) -> Response:
    """Begins the member's session anew; what it hears at least."""
    times = state.times(group.group_id, image)
    state.set_timer(Due.SESSION, group.group_id, member.member_id, now_ms + times.session_timeout_ms)
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
    """Decides on a heartbeat of a group that exists, or of a new one that its first records will make. In
    steps: the group may have a thousand members, whose assignment is made anew."""
    now_ms, image = clock
    check_size(group, request.member_id, state.settings.consumer_group_size_max)
    reported = reported_by(request)
    member_id = request.member_id or new_member_id(state.rng)
    records: list[Entry] = []
    if request.instance_id is None:
        before = dynamic_member(group, member_id, request.member_epoch, reported)
    else:
        before, records = static_member(group, member_id, request.instance_id, request.member_epoch, reported)
    after = with_news(before, request, caller)
    after = yield from progress(state, group, before, after, reported, records, clock)
    reply = alive(state, group, after, image, now_ms)
    if is_full(request) or after.assigned != before.assigned:
        reply.assignment = shown(after.assigned)
    return Outcome(records=records, reply=reply)


def progress(
    state: ConsumerState,
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    reported: Reported | None,
    records: list[Entry],
    clock: tuple[int, MetadataImage],
) -> Steps[ConsumerMember]:
    """Writes down what is new of a member, and leads it and its group as far as they can go."""
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
    group.metadata_is_fresh = True  # not before: whatever fails above is tried again
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
    """The group's epoch after its topics were looked at: one more if they, or who reads them, changed."""
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
    """Topics that the group reads once `after` stands in the place of `before`."""
    gone = {name for name in before.topics - after.topics if group.topic_counts.get(name) == 1}
    found = {*(group.topic_counts.keys() - gone), *after.topics}
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
    """Where the member goes: to a new target if the group's epoch moved on and the last one is old enough."""
    now_ms, image = clock
    by_id = image.topics.by_id
    resolved = group.resolved.get(after.regex) if after.regex else None
    topics = after.topics if resolved is None else after.topics | resolved.topics

    def reads(topic_id: bytes) -> bool:
        topic = by_id.get(topic_id)
        return topic is not None and topic.name in topics

    interval_ms = state.times(group.group_id, image).assignment_interval_ms
    last_ms = group.assignment_timestamp_ms
    if epoch > group.assignment_epoch and (not last_ms or now_ms >= last_ms + interval_ms):
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
    """Who has to give up partitions must do so in time; classic members are watched in other ways."""
    if member.is_classic:
        return
    state.cancel_timer(Due.REBALANCE, group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        state.set_timer(Due.REBALANCE, group_id, member.member_id, now_ms + member.rebalance_timeout_ms)


def with_news(member: ConsumerMember, request: Request, caller: Caller) -> ConsumerMember:
    """The member as it describes itself now; what a request leaves out stays as it was."""
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
    """Whoever joins, or says everything again after an error, wants to hear everything."""
    if request.member_epoch == JOINING_EPOCH:
        return True
    names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return (
        request.rebalance_timeout_ms != NO_TIMEOUT_MS
        and names_topics
        and request.topic_partitions is not None
    )


def shown(assigned: Owned) -> Response.Assignment:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )


def new_member_id(rng: Rng) -> str:
    """A random id in Kafka's text, for clients of version 0 that do not make their own."""
    bits = rng.getrandbits(128) & ~(0xF << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62)
    text = to_text(bits.to_bytes(16, "big"))
    return text if not text.startswith("-") else "A" + text[1:]

"""Finds the member that sent a heartbeat, and applies what the heartbeat says about it and the topology.

In: a group and a request. Out: the member before and after the request, and the group's topology. Raises
KafkaError for members that are unknown or fenced, and for topologies that contradict the group's.
Does not know: assignments, which topics exist.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.groups.basics.outcome import Caller
from barnabas.groups.basics.records import Entry
from barnabas.groups.streams import entries
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.member import JOINING_EPOCH, NO_TIMEOUT_MS, Endpoint, StreamsMember
from barnabas.groups.streams.state import StreamsState
from barnabas.groups.streams.tasks import Tasks
from barnabas.groups.streams.topology import StreamsTopology, from_value, to_value
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request


def find_member(
    state: StreamsState, group: StreamsGroup, request: Request, reported: Tasks | None
) -> StreamsMember:
    joins = request.member_epoch == JOINING_EPOCH
    size_max = state.settings.streams_group_size_max
    if joins and len(group.members) >= size_max:
        message = f"The streams group has reached its maximum capacity of {size_max} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    member = group.members.get(request.member_id)
    if member is None:
        if joins:
            return StreamsMember(request.member_id)
        raise unknown_member(group, request.member_id)
    check_epoch(member, request.member_epoch, reported)
    return member


def unknown_member(group: StreamsGroup, member_id: str | None) -> KafkaError:
    message = f"Member {member_id} is not a member of group {group.group_id}."
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)


def check_epoch(member: StreamsMember, epoch: int, reported: Tasks | None) -> None:
    """A member must send its epoch, or the previous one: the response with the new one may have been lost."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    if epoch > member.epoch:
        refuse("greater", epoch, member)
    if epoch != member.previous_epoch or reported is None or not reported.is_part_of(member.assigned):
        refuse("smaller", epoch, member)


def refuse(relation: str, epoch: int, member: StreamsMember) -> None:
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def with_request(member: StreamsMember, request: Request, caller: Caller) -> StreamsMember:
    """The member with the request's values; absent fields stay as they were."""
    timeout_ms, endpoint, tags = request.rebalance_timeout_ms, request.user_endpoint, request.client_tags
    if tags is not None and len({tag.key for tag in tags}) < len(tags):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka, without a message
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT_MS else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=caller.client_id,
        client_host=caller.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=member.client_tags
        if tags is None
        else tuple(sorted((tag.key, tag.value) for tag in tags)),
        endpoint=member.endpoint if endpoint is None else Endpoint(endpoint.host, endpoint.port),
    )


def topology_after(group: StreamsGroup, request: Request, records: list[Entry]) -> StreamsTopology:
    """The group's topology. The first member brings it; a later one may bring the same or an older one."""
    known = group.topology
    if request.topology is None:
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # its record was lost
        return known
    value = to_value(request.topology)
    if known is None:
        records.append(entries.topology(group.group_id, value))
        return from_value(value)
    if known.epoch <= request.topology.epoch and known != from_value(value):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known

"""Computes the target assignment of a streams group: which member should run which tasks.

In: a group, one changed member, the configured topology. Out: the assignment with the records of what
changed. A topology that is not ready gives empty assignments.
Does not know: how members get to their targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.groups.basics.records import Entry
from barnabas.groups.streams import entries
from barnabas.groups.streams.assignor import Assignment, MemberSpec
from barnabas.groups.streams.configuring import ConfiguredTopology
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.java_order import hash_order
from barnabas.groups.streams.member import StreamsMember
from barnabas.groups.streams.tasks import NO_TASKS, Tasks
from barnabas.metadata.steps import Steps

STANDBY_SETTING = "num.standby.replicas"


@dataclass(frozen=True, slots=True)
class Target:
    tasks: Mapping[str, Tasks]  # by member
    records: list[Entry]


def compute(
    group: StreamsGroup,
    epoch: int,
    member: StreamsMember | None,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
    now_ms: int,
) -> Steps[Target]:
    members = dict(group.members)
    if member is not None:
        members[member.member_id] = member
    assigned: dict[str, Tasks]
    if topology.is_ready:
        specs = {
            member_id: MemberSpec(each.process_id, group.target_of(member_id))
            for member_id, each in members.items()
        }
        standby_count = int(configs.get(STANDBY_SETTING, 0))
        assigned = yield from Assignment(specs, topology.specs, standby_count).compute()
    else:
        assigned = dict.fromkeys(hash_order(members), NO_TASKS)
    records = []
    for member_id, tasks in assigned.items():
        if tasks != group.target.get(member_id):
            records.append(entries.target(group.group_id, member_id, tasks))
        yield
    records.append(entries.target_epoch(group.group_id, epoch, now_ms))
    return Target(assigned, records)

"""How members go: they leave, or are fenced for silence or slowness.

In: a group and the members that go. Out: records. The group's epoch grows, so that others get the tasks.
Does not know: requests, time.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.basics.records import Entry
from barnabas.groups.streams import entries
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.state import StreamsState


def remove(state: StreamsState, group: StreamsGroup, member_ids: Iterable[str]) -> list[Entry]:
    """Remove some members of a group, with one new epoch."""
    records: list[Entry] = []
    for member_id in member_ids:
        records.extend(entries.member_tombstones(group.group_id, member_id))
        state.timers.cancel_all(group.group_id, member_id)
    records.append(
        entries.epoch(
            group.group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
    )
    return records


def tombstones(group: StreamsGroup) -> list[Entry]:
    """The records that delete the group."""
    group_id = group.group_id
    return [
        *(entries.no_current(group_id, member_id) for member_id in group.members),
        *(entries.no_target(group_id, member_id) for member_id in group.members),
        entries.no_target_epoch(group_id),
        *(entries.no_member(group_id, member_id) for member_id in group.members),
        entries.no_epoch(group_id),
        entries.no_topology(group_id),
    ]

"""The range assignor: of each topic, every member gets one range of neighbouring partitions.

Members are sorted by instance id, then by member id. So topics with equal numbers of partitions are cut at
the same places, and equal partition numbers go to one member (co-partitioning).
Does not know: the previous assignment; ranges move when members join and leave.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.groups.assignors.spec import Assignment, GroupSpec
from barnabas.metadata.steps import Steps, at_once


class RangeAssignor:
    name = "range"

    def assign(self, spec: GroupSpec) -> Mapping[str, Assignment]:
        return at_once(self.assign_in_steps(spec))

    def assign_in_steps(self, spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
        order = member_order(spec)
        assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in order}
        for topic_id in sorted(spec.topics):
            yield
            readers = [member_id for member_id in order if topic_id in spec.members[member_id].topic_ids]
            if not readers:
                continue
            each, extra = divmod(spec.topics[topic_id].partition_count, len(readers))
            start = 0
            for position, member_id in enumerate(readers):
                end = start + each + (position < extra)
                if start < end:
                    assigned[member_id][topic_id] = frozenset(range(start, end))
                start = end
        return assigned


def member_order(spec: GroupSpec) -> list[str]:
    """Static members by instance id first, then the others by member id."""

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = spec.members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    return sorted(spec.members, key=place)

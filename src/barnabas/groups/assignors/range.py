"""The range assignor: of each topic, every member gets one run of neighbouring partitions.

Members stand in the order of their instance ids, then of their member ids, so that topics with the same
number of partitions are cut at the same places and equal partitions meet at one member.
Does not know: the last assignment; runs move when members come and go.
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
    """Static members by instance id in front, then the others by member id."""

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = spec.members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    return sorted(spec.members, key=place)

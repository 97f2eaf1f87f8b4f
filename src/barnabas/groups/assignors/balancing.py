"""Balances members that read different topics: as even as their subscriptions allow, with few moves.

In: a group. Out: partitions per member. Members keep the partitions they may keep. A free partition goes to
the subscriber with the fewest partitions. Then, topic by topic, a partition moves from its fullest owner to
its emptiest subscriber while that evens them out, until a round moves nothing.
Does not know: racks.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from barnabas.groups.assignors.spec import Assignment, GroupSpec
from barnabas.metadata.steps import Steps

ROUNDS_MAX = 64  # each round lowers the sum of squares; far fewer are needed in practice

Held = dict[str, dict[bytes, set[int]]]


def balance(spec: GroupSpec) -> Steps[Mapping[str, Assignment]]:
    held, load, free = yield from keep_valid(spec)
    readers = yield from readers_by_topic(spec)
    # Topics with few readers first: they have the least choice.
    order = sorted(readers, key=lambda topic_id: (len(readers[topic_id]), topic_id))
    for topic_id in order:
        assign_free(topic_id, free[topic_id], readers[topic_id], held, load)
        yield
    for _ in range(ROUNDS_MAX):
        has_moved = False
        for topic_id in order:
            has_moved |= even_out(topic_id, readers[topic_id], held, load)
            yield
        if not has_moved:
            break
    assigned = {}
    for member_id, topics in held.items():
        assigned[member_id] = {
            topic_id: frozenset(found) for topic_id, found in sorted(topics.items()) if found
        }
        yield
    return assigned


def keep_valid(spec: GroupSpec) -> Steps[tuple[Held, dict[str, int], dict[bytes, list[int]]]]:
    """The partitions that stay with their members, how many each member has, and the free ones."""
    held: Held = {member_id: {} for member_id in sorted(spec.members)}
    assigned_to_any: dict[bytes, set[int]] = {topic_id: set() for topic_id in spec.topics}
    for member_id, topics in held.items():
        member = spec.members[member_id]
        for topic_id, partitions in member.assigned.items():
            if topic_id in member.topic_ids:
                count = spec.topics[topic_id].partition_count
                kept = {number for number in partitions - assigned_to_any[topic_id] if number < count}
                assigned_to_any[topic_id] |= kept
                topics[topic_id] = kept
        yield
    load = {member_id: sum(map(len, topics.values())) for member_id, topics in held.items()}
    free = {
        topic_id: [
            number for number in range(topic.partition_count) if number not in assigned_to_any[topic_id]
        ]
        for topic_id, topic in spec.topics.items()
    }
    return held, load, free


def readers_by_topic(spec: GroupSpec) -> Steps[dict[bytes, list[str]]]:
    readers: dict[bytes, list[str]] = {topic_id: [] for topic_id in spec.topics}
    for member_id in sorted(spec.members):
        for topic_id in spec.members[member_id].topic_ids:
            readers[topic_id].append(member_id)
        yield
    return {topic_id: found for topic_id, found in readers.items() if found}


def assign_free(
    topic_id: bytes, free: list[int], readers: list[str], held: Held, load: dict[str, int]
) -> None:
    if not free:
        return
    least = [(load[member_id], member_id) for member_id in readers]
    heapify(least)
    for partition in free:
        count, member_id = heappop(least)
        held[member_id].setdefault(topic_id, set()).add(partition)
        load[member_id] = count + 1
        heappush(least, (count + 1, member_id))


def even_out(topic_id: bytes, readers: list[str], held: Held, load: dict[str, int]) -> bool:
    """Move partitions of one topic from full to empty members; returns whether any moved."""
    least = [(load[member_id], member_id) for member_id in readers]
    most = [(-load[member_id], member_id) for member_id in readers if held[member_id].get(topic_id)]
    heapify(least)
    heapify(most)
    moved = False
    while least and most:
        full_count, full = -most[0][0], most[0][1]
        empty_count, empty = least[0]
        if full_count != load[full] or not held[full].get(topic_id):
            heappop(most)
            if held[full].get(topic_id):
                heappush(most, (-load[full], full))
            continue
        if empty_count != load[empty]:
            heappop(least)
            heappush(least, (load[empty], empty))
            continue
        if full_count - empty_count < 2:
            break
        partition = max(held[full][topic_id])
        held[full][topic_id].remove(partition)
        held[empty].setdefault(topic_id, set()).add(partition)
        load[full] -= 1
        load[empty] += 1
        moved = True
        heappush(most, (-load[empty], empty))
    return moved

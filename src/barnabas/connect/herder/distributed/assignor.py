"""Shares connectors and tasks among workers, moving as little as possible (KIP-415).

In: what each worker has, what there is, the time. Out: what each worker gets and gives up, and a delay. Work
of a worker that left stays unassigned until the delay is over, so that a restart moves nothing. Work that
changes hands is given up in one round and assigned in the next. Pure: the memory of the last round is `Plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.connect.herder.distributed.protocol import CONNECTOR, Work
from barnabas.connect.herder.states import TaskId

NOT_DUE = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of a round, and what the next one must remember."""

    added: dict[str, set[TaskId]] = field(default_factory=dict)
    revoked: dict[str, set[TaskId]] = field(default_factory=dict)
    held: dict[str, set[TaskId]] = field(default_factory=dict)  # when everything is done
    delay_ms: int = 0
    due_ms: int = NOT_DUE  # when lost work is assigned again
    lost: frozenset[TaskId] = frozenset()

    @property
    def known(self) -> set[TaskId]:
        return {each for work in self.held.values() for each in work} | self.lost


FIRST = Plan()


def eager(members: Mapping[str, Work], wanted: Work) -> Plan:
    """Everything anew, round robin: for the oldest protocol."""
    held: dict[str, set[TaskId]] = {member: set() for member in members}
    for work in kinds(wanted):
        spread(sorted(work), held, work)
    return Plan(added=held, revoked={}, held=held)


def assign(members: Mapping[str, Work], wanted: Work, last: Plan, now_ms: int, delay_ms_max: int) -> Plan:
    held = {member: set(work & wanted) for member, work in members.items()}
    revoked = {member: set(work - wanted) for member, work in members.items()}
    give_up_doubles(held, revoked)
    active = {each for work in held.values() for each in work}
    doubles = {each for work in revoked.values() for each in work} & wanted
    lost = (last.known & wanted) - active - doubles
    due_ms = last.due_ms
    if not lost:
        due_ms = NOT_DUE
    elif due_ms == NOT_DUE:
        due_ms = now_ms + delay_ms_max
    if lost and now_ms >= due_ms:
        lost, due_ms = set(), NOT_DUE
    free = wanted - active - lost - doubles
    added: dict[str, set[TaskId]] = {member: set() for member in members}
    for work in kinds(frozenset(free)):
        kind = frozenset(each for each in wanted if is_connector(each) == is_connector(next(iter(work))))
        for each, member in spread(sorted(work), held, kind):
            added[member].add(each)
    if not lost:
        level(held, added, revoked, wanted)
    delay_ms = max(due_ms - now_ms, 0) if due_ms != NOT_DUE else 0
    return Plan(added, revoked, held, delay_ms, due_ms, frozenset(lost))


def is_connector(each: TaskId) -> bool:
    return each.task == CONNECTOR


def kinds(work: Work) -> list[Work]:
    both = (
        frozenset(each for each in work if is_connector(each)),
        frozenset(each for each in work if not is_connector(each)),
    )
    return [each for each in both if each]


def spread(work: list[TaskId], held: dict[str, set[TaskId]], kind: Work) -> list[tuple[TaskId, str]]:
    """Give each piece to the worker that has the fewest of its kind."""
    found = []
    for each in work:
        if held:
            member = min(held, key=lambda name: (len(held[name] & kind), len(held[name]), name))
            held[member].add(each)
            found.append((each, member))
    return found


def give_up_doubles(held: dict[str, set[TaskId]], revoked: dict[str, set[TaskId]]) -> None:
    """Let both workers give up what both claim; it is assigned in the next round."""
    seen: set[TaskId] = set()
    doubles: set[TaskId] = set()
    for work in held.values():
        doubles |= work & seen
        seen |= work
    for member, work in held.items():
        revoked[member] |= work & doubles
        work -= doubles


def level(
    held: dict[str, set[TaskId]], added: dict[str, set[TaskId]], revoked: dict[str, set[TaskId]], wanted: Work
) -> None:
    """Revoke from workers that have more than their share, while another has less."""
    for kind in kinds(wanted):
        most = -(-len(kind) // max(len(held), 1))
        missing = sum(max(len(kind) // len(held) - len(work & kind), 0) for work in held.values())
        for member, work in held.items():
            for each in sorted((work & kind) - added[member], reverse=True):
                spare = len(work & kind) - (most if missing == 0 else len(kind) // len(held))
                if missing <= 0 or spare <= 0:
                    break
                work.discard(each)
                revoked[member].add(each)
                missing -= 1

"""Timers of members that are set and cancelled by name: what is due, for which member of which group.

In: names and times. Out: the names that are due. Timers are not recorded: they start anew when a shard is
loaded.
Does not know: the clock, what is done when a timer is due.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from barnabas.groups.basics.deadlines import Deadlines, Timer

Due = TypeVar("Due", bound=Enum)


class Deadline(NamedTuple, Generic[Due]):
    due: Due
    group_id: str
    member_id: str


class NamedTimer(Timer, Generic[Due]):
    """A timer with a name to find it by."""

    __slots__ = ("name",)

    def __init__(self, name: Deadline[Due]) -> None:
        super().__init__()
        self.name = name


class MemberTimers(Generic[Due]):
    __slots__ = ("_deadlines", "_kinds", "_timers")

    def __init__(self, kinds: Iterable[Due]) -> None:
        """`kinds` are the kinds of timers that a member may have."""
        self._kinds = tuple(kinds)
        self._deadlines: Deadlines[NamedTimer[Due]] = Deadlines()
        self._timers: dict[Deadline[Due], NamedTimer[Due]] = {}

    def set(self, due: Due, group_id: str, member_id: str, at_ms: int) -> None:
        deadline = Deadline(due, group_id, member_id)
        timer = self._timers.get(deadline)
        if timer is None:
            timer = self._timers[deadline] = NamedTimer(deadline)
        self._deadlines.set(timer, at_ms)

    def is_set(self, due: Due, group_id: str, member_id: str) -> bool:
        return Deadline(due, group_id, member_id) in self._timers

    def cancel(self, due: Due, group_id: str, member_id: str) -> None:
        timer = self._timers.pop(Deadline(due, group_id, member_id), None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self, group_id: str, member_id: str) -> None:
        for due in self._kinds:
            self.cancel(due, group_id, member_id)

    def pop_due(self, now_ms: int) -> Deadline[Due] | None:
        timer = self._deadlines.pop_due(now_ms)
        if timer is None:
            return None
        self._timers.pop(timer.name, None)
        return timer.name

    def next_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def shift(self, by_ms: int) -> None:
        """Shift all timers after the clock was set."""
        self._deadlines.shift(by_ms)

    def clear(self) -> None:
        self._timers.clear()
        self._deadlines = Deadlines()

    def __len__(self) -> int:
        return len(self._timers)

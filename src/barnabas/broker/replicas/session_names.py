"""What a follower's fetch session at its leader has, and what the next fetch tells it (KIP-227).

In: partitions to fetch, to fetch again, to leave out. Out: the names for the next fetch. A partition that the
session has is named whenever it was answered with records, or the leader would send them again. Partitions
that are new to the session come some at a time: a fetch that names thousands would keep the follower, which
encodes it, and the leader, which looks for all of them, from everything else.
Does not know: offsets, requests, connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

Key = tuple[bytes, int]  # topic id, partition
NEW_A_FETCH_MAX = 64


class SessionNames:
    """Fields are dicts for their order: what comes first is fetched first."""

    __slots__ = ("changed", "forgotten", "known", "new")

    def __init__(self) -> None:
        self.changed: dict[Key, None] = {}  # what the next fetch has to name
        self.new: dict[Key, None] = {}  # what the session does not have yet
        self.known: dict[Key, None] = {}  # what it has
        self.forgotten: dict[Key, None] = {}  # what it has and shall not have any more

    def want(self, key: Key) -> None:
        """Fetch this one, too."""
        (self.changed if key in self.known else self.new)[key] = None
        self.forgotten.pop(key, None)

    def leave_out(self, key: Key) -> None:
        self.changed.pop(key, None)
        self.new.pop(key, None)
        if key in self.known:
            self.forgotten[key] = None

    def start_anew(self, keys: Iterable[Key]) -> None:
        """There is no session: everything is new to the next one."""
        self.changed, self.known, self.forgotten = {}, {}, {}
        self.new = dict.fromkeys(keys)

    def name_all(self, keys: Iterable[Key]) -> None:
        """The leader keeps no session for us: each fetch names everything."""
        self.new, self.known, self.forgotten = {}, {}, {}
        self.changed = dict.fromkeys(keys)

    def next(self, is_left_out: Callable[[Key], bool]) -> list[Key]:
        """What to name now. What is left out comes again by `want`."""
        names = [key for key in self.changed if not is_left_out(key)]
        if self.new:
            names += self._some_new(is_left_out)
        return names

    def _some_new(self, is_left_out: Callable[[Key], bool]) -> list[Key]:
        some: list[Key] = []
        while self.new and not some:
            taken = list(islice(self.new, NEW_A_FETCH_MAX))
            for key in taken:
                del self.new[key]
            some = [key for key in taken if key not in self.changed and not is_left_out(key)]
        return some

    def told(self, names: Iterable[Key]) -> None:
        """The session has these now, and not what was forgotten."""
        for key in self.forgotten:
            self.known.pop(key, None)
        self.changed, self.forgotten = {}, {}
        for key in names:
            self.known[key] = None

    @property
    def is_ending(self) -> bool:
        """Whether nothing would be left in the session."""
        return len(self.known) == len(self.forgotten)

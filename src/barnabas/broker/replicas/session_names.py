"""The partitions in a follower's fetch session, and those that the next fetch names (KIP-227).

In: partitions to fetch, to fetch again, to leave out. Out: the partitions to name in the next fetch. A fetch
names a partition after it has received records, or the leader would send them again. New partitions join the
session a few at a time: a fetch of thousands would block the follower that encodes it and the leader that
reads all of them.
Does not know: offsets, requests, connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

Key = tuple[bytes, int]  # topic id, partition
NEW_A_FETCH_MAX = 64


class SessionNames:
    """Fields are dicts for their order: the first partition is fetched first."""

    __slots__ = ("changed", "forgotten", "known", "new")

    def __init__(self) -> None:
        self.changed: dict[Key, None] = {}  # to name in the next fetch
        self.new: dict[Key, None] = {}  # not in the session yet
        self.known: dict[Key, None] = {}  # in the session
        self.forgotten: dict[Key, None] = {}  # in the session, to be removed

    def want(self, key: Key) -> None:
        """Fetch this partition too."""
        (self.changed if key in self.known else self.new)[key] = None
        self.forgotten.pop(key, None)

    def leave_out(self, key: Key) -> None:
        self.changed.pop(key, None)
        self.new.pop(key, None)
        if key in self.known:
            self.forgotten[key] = None

    def start_anew(self, keys: Iterable[Key]) -> None:
        """Begin a new session: all partitions are new to it."""
        self.changed, self.known, self.forgotten = {}, {}, {}
        self.new = dict.fromkeys(keys)

    def name_all(self, keys: Iterable[Key]) -> None:
        """Name all partitions in each fetch: the leader keeps no session."""
        self.new, self.known, self.forgotten = {}, {}, {}
        self.changed = dict.fromkeys(keys)

    def next(self, is_left_out: Callable[[Key], bool]) -> list[Key]:
        """The partitions to name now. `want` adds those that were left out again."""
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

    def sent(self, names: Iterable[Key]) -> None:
        """Note that a fetch has named these, and has removed the forgotten ones."""
        for key in self.forgotten:
            self.known.pop(key, None)
        self.changed, self.forgotten = {}, {}
        for key in names:
            self.known[key] = None

    @property
    def is_ending(self) -> bool:
        """Whether the session would be empty."""
        return len(self.known) == len(self.forgotten)

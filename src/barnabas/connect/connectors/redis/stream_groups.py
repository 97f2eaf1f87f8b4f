"""Entries of streams for one consumer of a consumer group: Redis shares them among the group's consumers.

Entries that were delivered to this consumer before and are not acknowledged come first, then new ones, then
those of consumers that have gone. Acknowledged are entries that are in the topic. Does not know: records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import redis

Fields = dict[bytes, bytes]
Entries = list[tuple[bytes, Fields]]


class GroupReader:
    def __init__(
        self, group: str, consumer: str, names: Sequence[str], first: str, *, idle_ms: int, drops: bool
    ) -> None:
        self._group = group
        self.consumer = consumer
        self._names = list(names)
        self._first = first
        self._idle_ms = idle_ms  # after so long entries of another consumer are taken over; 0: never
        self._drops = drops  # entries that are acknowledged
        self._is_made = False
        self._before: dict[str, str] = {}  # streams with entries of before, and where they are read on
        self._claimed: dict[str, str] = {}  # where the search for entries of others goes on
        self._read: dict[str, deque[list[str]]] = {name: deque() for name in names}  # not acknowledged

    def read(self, client: Any, count: int, wait_ms: int) -> tuple[str, Entries] | None:
        """Some entries of one stream."""
        try:
            if not self._is_made:
                self._make(client)
            return (
                self._of_before(client, count)
                or self._new(client, count, wait_ms)
                or self._of_others(client, count)
            )
        except redis.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            self._is_made = False  # the stream was deleted, and its group with it
            return None

    def _make(self, client: Any) -> None:
        for name in self._names:
            try:
                client.xgroup_create(name, self._group, self._first, mkstream=True)
            except redis.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
        self._before = dict.fromkeys(self._names, "0-0")
        self._is_made = True

    def _of_before(self, client: Any, count: int) -> tuple[str, Entries] | None:
        for name, at in list(self._before.items()):
            entries = self._asked(client, name, at, count, None)
            if entries:
                self._before[name] = entries[-1][0].decode()
                return self._taken(client, name, entries)
            del self._before[name]
        return None

    def _new(self, client: Any, count: int, wait_ms: int) -> tuple[str, Entries] | None:
        part_ms = max(1, wait_ms // len(self._names))
        for name in list(self._names):
            entries = self._asked(client, name, ">", count, part_ms)
            if entries:
                self._names.remove(name)
                self._names.append(name)  # the others come first
                return self._taken(client, name, entries)
        return None

    def _of_others(self, client: Any, count: int) -> tuple[str, Entries] | None:
        for name in self._names if self._idle_ms else ():
            at = self._claimed.get(name, "0-0")
            found = client.xautoclaim(
                name, self._group, self.consumer, self._idle_ms, start_id=at, count=count
            )
            self._claimed[name] = found[0].decode()
            # Own entries are read already: they wait for their acknowledgement.
            known = {each for ids in self._read[name] for each in ids}
            entries = [each for each in found[1] if each[0] is not None and each[0].decode() not in known]
            if entries:
                return self._taken(client, name, entries)
        return None

    def _asked(self, client: Any, name: str, at: str, count: int, block: int | None) -> Entries:
        found = client.xreadgroup(self._group, self.consumer, {name: at}, count=count, block=block)
        return list(found[0][1]) if found else []

    def _taken(self, client: Any, name: str, entries: Entries) -> tuple[str, Entries] | None:
        """Note entries that must be acknowledged; those that were deleted meanwhile are at once."""
        gone = [id for id, fields in entries if not fields]
        if gone:
            client.xack(name, self._group, *gone)
        kept = [(id, fields) for id, fields in entries if fields]
        if not kept:
            return None
        self._read[name].append([id.decode() for id, _ in kept])
        return name, kept

    def acknowledge(self, client: Any, name: str, last: str) -> None:
        """Acknowledge what was read up to the batch whose last entry this is."""
        batches = self._read.get(name)
        if batches is None or not any(ids[-1] == last for ids in batches):
            return
        while batches:
            ids = batches[0]
            client.xack(name, self._group, *ids)
            if self._drops:
                client.xdel(name, *ids)
            batches.popleft()
            if ids[-1] == last:
                return

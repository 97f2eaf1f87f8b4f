"""Offsets committed in open transactions: they take effect when the transaction's marker commits them.

In: commits by producer id, commits outside of transactions, tombstones, ends of transactions, in the order of
the log. Out: whether an offset is pending, and what a transaction commits. The newest commit in the log wins:
one made outside, or in another transaction that ended first, stays if it was written later.
Does not know: groups, records, authorization.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.protocol.log_records.consumer_offsets import OffsetCommitValue


class OffsetKey(NamedTuple):
    group_id: str
    topic: str
    partition: int


class PendingOffsets:
    __slots__ = ("_by_producer", "_newest", "_number", "_producers")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[OffsetKey, tuple[int, OffsetCommitValue]]] = {}
        self._producers: dict[
            str, dict[OffsetKey, dict[int, None]]
        ] = {}  # by group; invariant: none is empty
        self._newest: dict[OffsetKey, int] = {}  # of pending keys: the number of the newest effective commit
        self._number = 0  # of the last applied commit

    def __bool__(self) -> bool:
        return bool(self._producers)

    def add(self, producer_id: int, key: OffsetKey, value: OffsetCommitValue) -> None:
        self._number += 1
        self._by_producer.setdefault(producer_id, {})[key] = self._number, value
        self._producers.setdefault(key.group_id, {}).setdefault(key, {})[producer_id] = None

    def committed(self, key: OffsetKey) -> None:
        """Note that an offset was committed outside of transactions."""
        if key in self._producers.get(key.group_id, ()):
            self._number += 1
            self._newest[key] = self._number

    def removed(self, key: OffsetKey) -> None:
        """Note that the offset was deleted: no open transaction may bring it back."""
        for producer_id in self._producers.get(key.group_id, {}).get(key, ()):
            self._by_producer[producer_id].pop(key, None)
        self._forget(key)

    def end(self, producer_id: int, *, is_commit: bool) -> list[tuple[OffsetKey, OffsetCommitValue]]:
        """End a transaction and return the offsets that take effect."""
        found = []
        for key, (number, value) in self._by_producer.pop(producer_id, {}).items():
            if is_commit and number > self._newest.get(key, 0):
                self._newest[key] = number
                found.append((key, value))
            producers = self._producers[key.group_id][key]
            del producers[producer_id]
            if not producers:
                self._forget(key)
        return found

    def _forget(self, key: OffsetKey) -> None:
        keys = self._producers.get(key.group_id)
        if keys is not None and keys.pop(key, None) is not None and not keys:
            del self._producers[key.group_id]
        self._newest.pop(key, None)

    # Lookups

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        keys = self._producers.get(group_id)
        return keys is not None and OffsetKey(group_id, topic, partition) in keys

    def of_group(self, group_id: str) -> list[OffsetKey]:
        return list(self._producers.get(group_id, ()))

    def of_topic(self, topic: str) -> Iterator[OffsetKey]:
        return (key for keys in self._producers.values() for key in keys if key.topic == topic)

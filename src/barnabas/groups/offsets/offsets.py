"""The committed offsets of groups, by group, topic and partition.

In: records of commits and tombstones, ends of transactions. Out: committed offsets, and tombstones for those
to delete. Values are kept as the messages in the log.
Does not know: members and generations, which topics exist (see `offset_requests`), when groups end.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.steps import portions
from barnabas.groups.offsets.pending_offsets import OffsetKey, PendingOffsets
from barnabas.metadata.steps import Steps
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

NO_EXPIRY = -1
Place = tuple[str, int]
TopicOffsets = dict[int, OffsetCommitValue]
Item = tuple[Place, OffsetCommitValue]
GroupOffsets = Item | dict[Place, OffsetCommitValue]
"""Most groups have one offset: a dict for each would take three times the memory."""


class Offsets:
    __slots__ = ("_by_group", "_places", "_topics", "pending")

    def __init__(self) -> None:
        self._by_group: dict[str, GroupOffsets] = {}
        # All groups share one tuple (topic and partition) for each place, by topic.
        self._places: dict[str, dict[int, Place]] = {}
        self._topics: dict[str, int] = {}  # topic -> number of committed offsets
        self.pending = PendingOffsets()

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            if self.pending:
                self.pending.removed(OffsetKey(key.group, key.topic, key.partition))
            return
        self._put(key.group, key.topic, key.partition, value)
        if self.pending:
            self.pending.committed(OffsetKey(key.group, key.topic, key.partition))

    def apply_pending(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Apply a commit of an open transaction."""
        self.pending.add(producer_id, OffsetKey(key.group, key.topic, key.partition), value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for key, value in self.pending.end(producer_id, is_commit=is_commit):
            self._put(*key, value)

    def _put(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> None:
        place = (topic, partition)
        offsets = self._by_group.get(group_id)
        if isinstance(offsets, tuple) and offsets[0] == place:
            self._by_group[group_id] = (offsets[0], value)
            return
        if isinstance(offsets, dict) and place in offsets:
            offsets[place] = value
            return
        place = self._places.setdefault(topic, {}).setdefault(partition, place)
        self._topics[topic] = self._topics.get(topic, 0) + 1
        if offsets is None:
            self._by_group[group_id] = (place, value)
        elif isinstance(offsets, dict):
            offsets[place] = value
        else:
            self._by_group[group_id] = dict((offsets, (place, value)))

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        if self.get(group_id, topic, partition) is None:
            return
        offsets = self._by_group[group_id]
        if isinstance(offsets, dict):
            del offsets[topic, partition]
        if not offsets or isinstance(offsets, tuple):
            del self._by_group[group_id]
        self._topics[topic] -= 1
        if not self._topics[topic]:
            del self._topics[topic]
            del self._places[topic]

    def of_group(self, group_id: str) -> dict[str, TopicOffsets]:
        """All offsets of a group, by topic and partition."""
        found: dict[str, TopicOffsets] = {}
        for (topic, partition), value in self._items(group_id):
            found.setdefault(topic, {})[partition] = value
        return found

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        offsets, place = self._by_group.get(group_id), (topic, partition)
        if isinstance(offsets, dict):
            return offsets.get(place)
        return offsets[1] if offsets is not None and offsets[0] == place else None

    def _items(self, group_id: str) -> Iterable[Item]:
        offsets = self._by_group.get(group_id)
        if offsets is None:
            return ()
        return offsets.items() if isinstance(offsets, dict) else (offsets,)

    def group_ids(self) -> list[str]:
        """The groups that have offsets."""
        return list(self._by_group)

    def places(self, group_id: str) -> list[Place]:
        """The topics and partitions in which a group has offsets."""
        return [place for place, _ in self._items(group_id)]

    def count_of(self, group_id: str) -> int:
        """The number of a group's offsets."""
        offsets = self._by_group.get(group_id)
        if isinstance(offsets, dict):
            return len(offsets)
        return 0 if offsets is None else 1

    def has_topic(self, topic: str) -> bool:
        """Whether any group has offsets in a topic, including pending ones."""
        return topic in self._topics or any(True for _ in self.pending.of_topic(topic))

    @property
    def count(self) -> int:
        return sum(self._topics.values())

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for this partition."""
        return self.pending.has(group_id, topic, partition)

    # Tombstones

    def tombstones(self, group_id: str) -> Steps[list[Entry]]:
        """The records that delete every offset of a group, including pending ones."""
        found = []
        for places in portions(self.places(group_id)):
            found += [tombstone(group_id, *place) for place in places]
            yield
        found += [tombstone(*key) for key in self.pending.of_group(group_id) if self.get(*key) is None]
        return found


def tombstone(group_id: str, topic: str, partition: int) -> Entry:
    return Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def is_expired(value: OffsetCommitValue, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    """Whether an offset has expired: at the time that an old client gave, else after the retention,
    counted from `since_ms` (-1: from the commit)."""
    if value.expire_timestamp != NO_EXPIRY:
        return now_ms >= value.expire_timestamp
    return now_ms - (value.commit_timestamp if since_ms == -1 else since_ms) >= retention_ms

"""Offsets that groups committed, by group, topic and partition.

In: records of commits and tombstones, ends of transactions. Out: what is committed, and tombstones for what
shall go. Values are kept as the messages that the log holds.
Does not know: members and generations, which topics exist (see `offset_requests`), when groups end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.groups.pending_offsets import OffsetKey, PendingOffsets
from barnabas.groups.records import Entry
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

NO_EXPIRY = -1
TopicOffsets = dict[int, OffsetCommitValue]


class Offsets:
    __slots__ = ("_by_group", "_groups_by_topic", "pending")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, TopicOffsets]] = {}
        self._groups_by_topic: dict[str, int] = {}  # how many groups have offsets in a topic
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
        """A commit of a transaction that is open."""
        self.pending.add(producer_id, OffsetKey(key.group, key.topic, key.partition), value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for key, value in self.pending.end(producer_id, is_commit=is_commit):
            self._put(*key, value)

    def _put(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> None:
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
            self._groups_by_topic[topic] = self._groups_by_topic.get(topic, 0) + 1
        partitions[partition] = value

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is None or partitions:
            return
        del topics[topic]
        self._groups_by_topic[topic] -= 1
        if not self._groups_by_topic[topic]:
            del self._groups_by_topic[topic]
        if not topics:
            del self._by_group[group_id]

    def of_group(self, group_id: str) -> dict[str, TopicOffsets]:
        """All offsets of a group, to be read only."""
        return self._by_group.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def has_any(self, group_id: str) -> bool:
        return group_id in self._by_group

    @property
    def topics(self) -> Iterable[str]:
        """Topics in which any group has offsets, pending ones too."""
        if not self.pending:
            return self._groups_by_topic
        return [*self._groups_by_topic, *sorted(self.pending.topics - self._groups_by_topic.keys())]

    @property
    def count(self) -> int:
        return sum(len(found) for topics in self._by_group.values() for found in topics.values())

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction holds an offset here."""
        return self.pending.has(group_id, topic, partition)

    # Tombstones

    def tombstones(self, group_id: str) -> list[Entry]:
        """Records that remove every offset of a group, pending ones too."""
        found = [
            tombstone(group_id, topic, partition)
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        ]
        found += [tombstone(*key) for key in self.pending.of_group(group_id) if self.get(*key) is None]
        return found

    def tombstones_of_topic(self, topic: str) -> Iterator[Entry]:
        """Records that remove the offsets of all groups in a topic that is gone."""
        if topic in self._groups_by_topic:
            for group_id, topics in self._by_group.items():
                for partition in topics.get(topic, ()):
                    yield tombstone(group_id, topic, partition)
        for key in self.pending.of_topic(topic):
            if self.get(*key) is None:
                yield tombstone(*key)


def tombstone(group_id: str, topic: str, partition: int) -> Entry:
    return Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def is_expired(value: OffsetCommitValue, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    """Old clients said when an offset expires; all others go by the retention, from `since_ms` on (-1: from
    the commit)."""
    if value.expire_timestamp != NO_EXPIRY:
        return now_ms >= value.expire_timestamp
    return now_ms - (value.commit_timestamp if since_ms == -1 else since_ms) >= retention_ms

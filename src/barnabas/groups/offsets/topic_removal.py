"""Removes the offsets of deleted topics, in turns of bounded work.

In: names of deleted topics, time, the existing topics. Out: tombstones in outcomes of bounded size. The
records of a turn are applied before the next turn. Offsets committed meanwhile to a new topic of the same
name stay.
Does not know: groups, records of other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.offsets.offsets import Offsets, tombstone
from barnabas.metadata.topics import TopicsImage
from barnabas.protocol import NULL_UUID
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitValue

CHECKS_PER_TURN = 1000  # groups and offsets: less than a millisecond
RECORDS_PER_TURN = 100  # a record costs ten times as much as a check


class TopicRemoval:
    __slots__ = ("_due_ms", "_names", "_offsets", "_topics", "_turns")

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._names: dict[str, int] = {}  # deleted topics that no pass has begun for -> time
        self._turns: Iterator[list[Entry]] | None = None
        self._due_ms: int | None = None
        self._topics = TopicsImage()

    def deleted(self, names: Iterable[str], now_ms: int) -> None:
        for name in names:
            if self._offsets.has_topic(name):
                self._names[name] = now_ms
                self._due_ms = now_ms

    def next_deadline_ms(self) -> int | None:
        return self._due_ms

    def on_clock_set(self, by_ms: int) -> None:
        if self._due_ms is not None:
            self._due_ms += by_ms

    def on_timer(self, now_ms: int, topics: TopicsImage) -> list[Outcome]:
        """Run the next turn. More turns follow at once until every group was checked."""
        if self._due_ms is None or now_ms < self._due_ms:
            return []
        self._topics = topics
        if self._turns is None:
            names, self._names = self._names, {}
            self._turns = self._remove(names)
        records = next(self._turns, None)
        if records is None:
            self._turns = None
            if not self._names:
                self._due_ms = None
        return [Outcome(records=records)] if records else []

    def _remove(self, names: dict[str, int]) -> Iterator[list[Entry]]:
        """One pass over all groups for all of these topics."""
        offsets = self._offsets
        records: list[Entry] = []
        checks = 0
        for group_id in offsets.group_ids():
            places = iter(offsets.places(group_id))
            while some := list(islice(places, RECORDS_PER_TURN)):
                for topic, partition in some:
                    if topic in names:
                        value = offsets.get(group_id, topic, partition)
                        if value is not None and self._is_old(topic, value, names[topic]):
                            records.append(tombstone(group_id, topic, partition))
                checks += 1 + len(some)
                if checks >= CHECKS_PER_TURN or len(records) >= RECORDS_PER_TURN:
                    yield records
                    records, checks = [], 0
        for topic in names:
            if topic not in self._topics.by_name:
                pending = offsets.pending.of_topic(topic)
                records += [tombstone(*key) for key in pending if offsets.get(*key) is None]
        if records:
            yield records

    def _is_old(self, topic: str, value: OffsetCommitValue, deleted_ms: int) -> bool:
        """Whether an offset belongs to the deleted topic, and not to a new topic of the same name."""
        exists = self._topics.by_name.get(topic)
        if exists is None:
            return True
        if value.topic_id == NULL_UUID:
            return value.commit_timestamp <= deleted_ms
        return value.topic_id != exists.id

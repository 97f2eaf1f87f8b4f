"""Expires offsets past retention, and groups without members and offsets.

In: time. Every `offsets.retention.check.interval.ms` it checks all groups, in turns of bounded work, so that
neither many groups nor many offsets of one group delay other requests. Out: tombstones in outcomes of bounded
size. The records of a turn are applied before the next turn.
Does not know: when a kind of group keeps its offsets (it asks the kind).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from barnabas.groups.basics.kind import KEEP_ALL, GroupKind
from barnabas.groups.basics.outcome import Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.offsets.offsets import Offsets, Place, is_expired, tombstone

CHECKS_PER_TURN = 500  # groups and offsets: about a millisecond
RECORDS_PER_TURN = 100  # a record costs ten times as much as a check

Kinds = Callable[[str], GroupKind | None]


class Expiry:
    __slots__ = ("_deadline_ms", "_interval_ms", "_offsets", "_retention_ms", "_turns")

    def __init__(self, settings: GroupSettings, offsets: Offsets) -> None:
        self._retention_ms = settings.offsets_retention_ms
        self._interval_ms = settings.offsets_retention_check_interval_ms
        self._offsets = offsets
        self._deadline_ms: int | None = None
        self._turns: Iterator[list[Entry]] | None = None

    def start(self, now_ms: int) -> None:
        self._deadline_ms = now_ms + self._interval_ms

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def on_clock_set(self, by_ms: int) -> None:
        if self._deadline_ms is not None:
            self._deadline_ms += by_ms

    def on_timer(self, now_ms: int, group_ids: Callable[[], list[str]], kind_of: Kinds) -> list[Outcome]:
        """Run the next turn, if one is due. More turns follow at once until every group was checked."""
        if self._deadline_ms is None or now_ms < self._deadline_ms:
            return []
        if self._turns is None:
            self._turns = self._check_all(group_ids(), kind_of, now_ms)
        records = next(self._turns, None)
        if records is None:
            self._turns = None
            self._deadline_ms = now_ms + self._interval_ms
        return [Outcome(records=records)] if records else []

    def _check_all(self, group_ids: list[str], kind_of: Kinds, now_ms: int) -> Iterator[list[Entry]]:
        records: list[Entry] = []
        checks = 0
        for group_id in group_ids:
            places = iter(self._offsets.places(group_id))
            unapplied = 0  # offsets of the group whose tombstones are in `records`
            while some := list(islice(places, RECORDS_PER_TURN)):
                expired = self._expired(group_id, some, kind_of, now_ms)
                records += expired
                unapplied += len(expired)
                checks += len(some)
                if checks >= CHECKS_PER_TURN or len(records) >= RECORDS_PER_TURN:
                    yield records
                    records, checks, unapplied = [], 0, 0
            checks += 1
            kind = kind_of(group_id)
            if kind is not None and self._is_finished(group_id, kind, unapplied):
                records += kind.tombstones(group_id)
            if checks >= CHECKS_PER_TURN or len(records) >= RECORDS_PER_TURN:
                yield records
                records, checks = [], 0
        if records:
            yield records

    def _expired(self, group_id: str, places: list[Place], kind_of: Kinds, now_ms: int) -> list[Entry]:
        """Tombstones of the group's expired offsets, as the state is in this turn."""
        kind = kind_of(group_id)
        if not places or kind is None or (since_ms := kind.expires_since(group_id)) is KEEP_ALL:
            return []
        found = []
        kept_topics: dict[str, bool] = {}
        offsets, retention_ms = self._offsets, self._retention_ms
        for topic, partition in places:
            is_kept = kept_topics.get(topic)
            if is_kept is None:
                is_kept = kept_topics[topic] = kind.is_subscribed(group_id, topic)
            value = offsets.get(group_id, topic, partition)
            if is_kept or value is None or not is_expired(value, since_ms, retention_ms, now_ms):
                continue
            if not offsets.is_pending(group_id, topic, partition):
                found.append(tombstone(group_id, topic, partition))
        return found

    def _is_finished(self, group_id: str, kind: GroupKind, expired: int) -> bool:
        """Whether the group is deleted too: it has no member, and only the `expired` offsets are left."""
        return (
            kind.is_empty(group_id)
            and kind.expires_since(group_id) is not KEEP_ALL
            and self._offsets.count_of(group_id) == expired
            and not self._offsets.pending.of_group(group_id)
        )

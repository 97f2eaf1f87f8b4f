"""Offsets whose time is over, and groups that nobody needs any more.

In: time, and a look at every group each `offsets.retention.check.interval.ms`, some hundred at a time, so
that a shard of many groups does not hold up the rest. Out: tombstones in outcomes of bounded size.
Does not know: what makes a kind of group keep its offsets (it asks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from barnabas.groups.kind import KEEP_ALL, GroupKind
from barnabas.groups.offsets import Offsets, is_expired, tombstone
from barnabas.groups.outcome import Outcome
from barnabas.groups.records import Entry
from barnabas.groups.settings import GroupSettings

GROUPS_A_TURN = 500
RECORDS_AN_OUTCOME_MAX = 1000


class Expiry:
    __slots__ = ("_deadline_ms", "_interval_ms", "_offsets", "_remaining", "_retention_ms")

    def __init__(self, settings: GroupSettings, offsets: Offsets) -> None:
        self._retention_ms = settings.offsets_retention_ms
        self._interval_ms = settings.offsets_retention_check_interval_ms
        self._offsets = offsets
        self._deadline_ms: int | None = None
        self._remaining: Iterator[str] | None = None

    def start(self, now_ms: int) -> None:
        self._deadline_ms = now_ms + self._interval_ms

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def clock_was_set(self, by_ms: int) -> None:
        if self._deadline_ms is not None:
            self._deadline_ms += by_ms

    def on_time(
        self,
        now_ms: int,
        group_ids: Callable[[], list[str]],
        kind_of: Callable[[str], GroupKind | None],
    ) -> list[Outcome]:
        """The next turn, if it is time; more turns follow at once until every group was looked at."""
        if self._deadline_ms is None or now_ms < self._deadline_ms:
            return []
        if self._remaining is None:
            self._remaining = iter(group_ids())
        turn = list(islice(self._remaining, GROUPS_A_TURN))
        if len(turn) < GROUPS_A_TURN:
            self._remaining = None
            self._deadline_ms = now_ms + self._interval_ms
        records: list[Entry] = []
        for group_id in turn:
            kind = kind_of(group_id)
            if kind is not None:
                records += self._of_group(group_id, kind, now_ms)
        return in_outcomes(records)

    def _of_group(self, group_id: str, kind: GroupKind, now_ms: int) -> list[Entry]:
        topics = self._offsets.of_group(group_id)
        since_ms = kind.expires_since(group_id)
        if topics and since_ms is KEEP_ALL:
            return []
        records = []
        is_needed = not kind.is_empty(group_id) or bool(self._offsets.pending.of_group(group_id))
        for topic, partitions in topics.items():
            if kind.is_subscribed(group_id, topic):
                is_needed = True
                continue
            for partition, value in partitions.items():
                is_over = is_expired(value, since_ms or 0, self._retention_ms, now_ms)
                if is_over and not self._offsets.is_pending(group_id, topic, partition):
                    records.append(tombstone(group_id, topic, partition))
                else:
                    is_needed = True
        if not is_needed:
            records += kind.tombstones(group_id)
        return records


def in_outcomes(records: Iterable[Entry]) -> list[Outcome]:
    """Records that need not be appended together, in outcomes that fit into a batch."""
    remaining = iter(records)
    outcomes = []
    while part := list(islice(remaining, RECORDS_AN_OUTCOME_MAX)):
        outcomes.append(Outcome(records=part))
    return outcomes

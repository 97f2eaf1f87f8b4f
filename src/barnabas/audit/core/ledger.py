"""The ledger: all count messages summed up, by topic, bucket and tier.

In: count messages with the time at which the audit topic's broker stored them. Out: cells to compare,
sessions that ended without a word, hosts whose clocks differ. Each range of a stream counts once
(`streams.py`). Old buckets are dropped, and the number of cells is bounded. Does not know: the audit topic,
verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from barnabas.audit.core.buckets import NO_TIME
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import NO_PARTITION, CountMessage, StreamKind, Tally
from barnabas.audit.core.streams import Stream

KEEP_MS = 7 * 86_400_000
CELLS_MAX = 500_000
SHARES_MAX = 1_000  # hosts and partitions that one cell tells apart
OTHERS = "(others)"
SKEW_NOTED_MS = 5_000
STREAMS_MAX = 200_000


class Applied(Enum):
    COUNTED = "counted"
    REPEATED = "repeated"  # its range was counted before
    HEARTBEAT = "heartbeat"


@dataclass(slots=True)
class Cell:
    """The counts of one tier for one topic and bucket."""

    width_ms: int
    total: Tally = field(default_factory=Tally)
    shares: dict[tuple[str, int], Tally] = field(default_factory=dict)  # by host and partition
    delays: Delays = field(default_factory=Delays)
    last_ms: int = 0  # when the last count arrived, by the clock of the audit topic's broker

    def add(self, host: str, partition: int, tally: Tally, arrived_ms: int) -> None:
        self.total = self.total.plus(tally)
        place = (host, partition)
        if place not in self.shares and len(self.shares) >= SHARES_MAX:
            place = (OTHERS, NO_PARTITION)
        self.shares[place] = self.shares.get(place, Tally()).plus(tally)
        self.last_ms = max(self.last_ms, arrived_ms)

    @property
    def hosts(self) -> list[str]:
        return sorted({host for host, _ in self.shares})

    def by_partition(self, *, with_dropped: bool = True) -> dict[int, int] | None:
        """Accounted records of each partition; None if some are of partitions that are not known. The next
        tier is not expected to have what this one dropped on purpose."""
        found: dict[int, int] = {}
        for (_, partition), tally in self.shares.items():
            if partition == NO_PARTITION:
                return None
            count = tally.counted + (tally.dropped if with_dropped else 0)
            found[partition] = found.get(partition, 0) + count
        return found


@dataclass(slots=True)
class Session:
    """A counter in memory, from its first message to its last."""

    tier: str
    host: str
    seen_ms: int
    interval_ms: int = 0  # between its last two messages
    is_closed: bool = False
    topics: set[str] = field(default_factory=set)


Column = tuple[str, int]  # topic, bucket


class Ledger:
    def __init__(self, *, keep_ms: int = KEEP_MS, cells_max: int = CELLS_MAX) -> None:
        self.columns: dict[Column, dict[str, Cell]] = {}
        self.sessions: dict[tuple[str, str], Session] = {}
        self.skews_ms: dict[str, int] = {}  # by host: how far its clock is behind the broker's
        self.expired: dict[tuple[str, str], int] = {}  # by tier and topic: offsets that nobody could count
        self.totals: dict[tuple[str, str], int] = {}  # by tier and topic: all records that were ever counted
        self.repeated = 0
        self.merged_conflicts = 0  # of ledgers that were merged into this one
        self.merged_gaps: list[tuple[str, str, int]] = []
        self._streams: dict[tuple[str, str], Stream] = {}
        self._keep_ms = keep_ms
        self._cells_max = cells_max
        self._cells = 0

    def apply(self, message: CountMessage, arrived_ms: int) -> Applied:
        if message.kind is StreamKind.SESSION:
            self._note_session(message, arrived_ms)
        skew_ms = arrived_ms - message.time_ms
        if abs(skew_ms) >= SKEW_NOTED_MS and message.kind is StreamKind.SESSION:
            self.skews_ms[message.host] = skew_ms
        stream = self._stream(message.tier, message.stream)
        stream.may_have_gaps = message.kind is StreamKind.BATCHES
        fresh = stream.accept(message)
        if fresh is None:
            self.repeated += 1
            return Applied.REPEATED
        if message.expired:
            place = (message.tier, message.topic)
            self.expired[place] = self.expired.get(place, 0) + message.expired
        for (topic, partition, bucket), tally in fresh.items():
            if any(tally):
                cell = self.cell(topic, bucket, message.tier, message.width_ms)
                cell.add(message.host, partition, tally, arrived_ms)
                key = (message.tier, topic)
                self.totals[key] = self.totals.get(key, 0) + tally.counted
        for entry in message.entries:
            if entry.delays.counts:
                cell = self.cell(message.topic, entry.bucket_ms, message.tier, message.width_ms)
                cell.delays.merge(entry.delays)
        return Applied.COUNTED if message.entries else Applied.HEARTBEAT

    def cell(self, topic: str, bucket: int, tier: str, width_ms: int) -> Cell:
        column = self.columns.setdefault((topic, bucket), {})
        cell = column.get(tier)
        if cell is None:
            cell = column[tier] = Cell(width_ms)
            self._cells += 1
            if self._cells > self._cells_max:
                self._drop_oldest(topic, bucket)
        return cell

    def _drop_oldest(self, topic: str, bucket: int) -> None:
        oldest = min(
            (each for each in self.columns if each[1] != NO_TIME and each != (topic, bucket)),
            key=lambda each: each[1],
            default=None,
        )
        if oldest is not None:
            self._cells -= len(self.columns.pop(oldest))

    def forget_before(self, now_ms: int) -> None:
        """Drop buckets and sessions that are older than the ledger keeps."""
        before_ms = now_ms - self._keep_ms
        for column in [each for each in self.columns if NO_TIME < each[1] < before_ms]:
            self._cells -= len(self.columns.pop(column))
        for key in [key for key, session in self.sessions.items() if session.seen_ms < before_ms]:
            del self.sessions[key]
            self._streams.pop(key, None)

    def _stream(self, tier: str, name: str) -> Stream:
        found = self._streams.pop((tier, name), None) or Stream()
        self._streams[tier, name] = found  # the stream that was used last is at the end
        if len(self._streams) > STREAMS_MAX:
            del self._streams[next(iter(self._streams))]
        return found

    def _note_session(self, message: CountMessage, arrived_ms: int) -> None:
        key = (message.tier, message.stream)
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = Session(message.tier, message.host, arrived_ms)
        session.interval_ms = max(session.interval_ms, arrived_ms - session.seen_ms)
        session.seen_ms = max(session.seen_ms, arrived_ms)
        session.is_closed = session.is_closed or message.is_last
        if message.topic:
            session.topics.add(message.topic)

    # -- questions -----------------------------------------------------------------------------------

    def gaps(self) -> Iterator[tuple[str, str, int]]:
        """Streams with ranges that nobody counted: tier, stream, size."""
        yield from self.merged_gaps
        for (tier, name), stream in self._streams.items():
            missing = sum(end - start for start, end in stream.gaps)
            if missing:
                yield tier, name, missing

    @property
    def conflicts(self) -> int:
        return self.merged_conflicts + sum(stream.conflicts for stream in self._streams.values())

    def silent_sessions(self, now_ms: int, patience_ms: int) -> list[Session]:
        """Sessions that sent nothing for longer than they used to, and did not say that they end."""
        return [
            session
            for session in self.sessions.values()
            if not session.is_closed and now_ms - session.seen_ms > max(patience_ms, 3 * session.interval_ms)
        ]

    def tiers_of(self, topic: str) -> set[str]:
        return {tier for (name, _), column in self.columns.items() if name == topic for tier in column}

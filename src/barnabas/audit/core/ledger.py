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

from barnabas.audit.core.buckets import NO_TIME, bucket_of
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import NO_PARTITION, CountMessage, StreamKind, Tally
from barnabas.audit.core.streams import Stream

KEEP_MS = 7 * 86_400_000
CELLS_MAX = 500_000
SHARES_MAX = 1_000  # hosts and partitions that one cell tells apart
OTHERS = "(others)"
SKEW_NOTED_MS = 5_000
STREAMS_MAX = 200_000
DROPPED_AT_ONCE = 20  # a part of the cells, where there are too many: the search for the oldest takes long
SLOT_MS = 10_000  # of arrivals
SLOTS_MAX = 128
ARRIVALS_KEPT_MS = 3_600_000
UNKNOWN = 2**62
WINDOWS_LOST = 3  # a counter that dies loses at most the counts of so many windows


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
    # Records by the time when their counts arrived, with the time of the last one.
    arrivals: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, host: str, partition: int, tally: Tally, arrived_ms: int) -> None:
        self.total = self.total.plus(tally)
        self.note_arrival(arrived_ms, tally.counted + tally.dropped)
        place = (host, partition)
        if place not in self.shares and len(self.shares) >= SHARES_MAX:
            place = (OTHERS, NO_PARTITION)
        self.shares[place] = self.shares.get(place, Tally()).plus(tally)
        self.last_ms = max(self.last_ms, arrived_ms)

    def note_arrival(self, arrived_ms: int, count: int) -> None:
        slot = arrived_ms - arrived_ms % SLOT_MS
        known, last_ms = self.arrivals.get(slot, (0, 0))
        self.arrivals[slot] = (known + count, max(last_ms, arrived_ms))
        if len(self.arrivals) > SLOTS_MAX:
            del self.arrivals[min(self.arrivals)]

    def arrived_after(self, moment_ms: int) -> int:
        """Records whose counts arrived behind this moment."""
        return sum(count for count, last_ms in self.arrivals.values() if last_ms > moment_ms)

    @property
    def hosts(self) -> list[str]:
        return sorted({host for host, _ in self.shares})

    def by_partition(self) -> dict[int, Tally] | None:
        """The counts of each partition; None if some are of partitions that are not known."""
        found: dict[int, Tally] = {}
        for (_, partition), tally in self.shares.items():
            if partition == NO_PARTITION:
                return None
            found[partition] = found.get(partition, Tally()).plus(tally)
        return found


@dataclass(slots=True)
class Doubt:
    """Counts of one topic in a message of a counter. If the counter died, its lost counts are not far off."""

    low_ms: int
    high_ms: int
    width_ms: int
    most: int  # records of one message


@dataclass(slots=True)
class Session:
    """A counter in memory, from its first message to its last."""

    tier: str
    host: str
    seen_ms: int
    interval_ms: int = 0  # between its last two messages
    is_closed: bool = False
    messages: int = 0
    topics: dict[str, Doubt] = field(default_factory=dict)

    def doubt(self, topic: str, bucket: int) -> int:
        """How many records of a bucket the session may have counted last, if it ended without telling."""
        counted = self.topics.get(topic)
        if counted is None:
            return 0
        stopped_ms = self.seen_ms + max(WINDOWS_LOST * self.interval_ms, SLOT_MS)
        high_ms = max(
            2 * counted.high_ms - counted.low_ms + counted.width_ms, bucket_of(stopped_ms, counted.width_ms)
        )
        if bucket != NO_TIME and not counted.low_ms <= bucket <= high_ms:
            return 0
        return WINDOWS_LOST * counted.most if self.messages > 1 else UNKNOWN


Column = tuple[str, int]  # topic, bucket


class Ledger:
    def __init__(self, *, keep_ms: int = KEEP_MS, cells_max: int = CELLS_MAX) -> None:
        self.columns: dict[Column, dict[str, Cell]] = {}
        self.sessions: dict[tuple[str, str], Session] = {}
        self.skews_ms: dict[str, int] = {}  # by host: how far its clock is behind the broker's
        self.expired: dict[tuple[str, str], int] = {}  # by tier and topic: offsets that nobody could count
        self.lost: dict[tuple[str, str], int] = {}  # by tier and topic: records that elections have removed
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
        if message.is_correction and message.kind is StreamKind.OFFSETS:
            lost = -sum(min(tally.counted, 0) for tally in fresh.values())
            place = (message.tier, message.topic)
            self.lost[place] = self.lost.get(place, 0) + lost
        for (topic, partition, bucket), tally in fresh.items():
            if any(tally):
                cell = self.cell(topic, bucket, message.tier, message.width_ms)
                cell.add(message.host, partition, tally, arrived_ms)
                key = (message.tier, topic)
                self.totals[key] = self.totals.get(key, 0) + tally.counted
        for entry in message.entries:
            if entry.delays.counts and not message.is_correction:  # the records were seen before
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
        """Drop whole columns until there is room for some cells more."""
        kept = self._cells_max - self._cells_max // DROPPED_AT_ONCE
        by_age = (each for each in self.columns if each[1] != NO_TIME and each != (topic, bucket))
        for oldest in sorted(by_age, key=lambda each: each[1]):
            self._cells -= len(self.columns.pop(oldest))
            if self._cells <= kept:
                return

    def forget_before(self, now_ms: int) -> None:
        """Drop buckets and sessions that are older than the ledger keeps."""
        before_ms = now_ms - self._keep_ms
        for place in [each for each in self.columns if NO_TIME < each[1] < before_ms]:
            self._cells -= len(self.columns.pop(place))
        for column in self.columns.values():
            for cell in column.values():
                if cell.arrivals and cell.last_ms < now_ms - ARRIVALS_KEPT_MS:
                    cell.arrivals = {}
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
        session.messages = max(session.messages, message.end)
        if message.topic and message.entries:
            buckets = [entry.bucket_ms for entry in message.entries]
            counted = sum(entry.tally.counted for entry in message.entries)
            before = session.topics.get(message.topic)
            session.topics[message.topic] = Doubt(
                min(buckets),
                max(buckets),
                message.width_ms,
                max(counted, before.most if before is not None else 0),
            )

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

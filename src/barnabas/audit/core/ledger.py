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
from math import lcm

from barnabas.audit.core.buckets import NO_TIME, bucket_end, bucket_of
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.messages import NO_OFFSET, NO_PARTITION, CountMessage, StreamKind, Tally
from barnabas.audit.core.streams import Stream
from barnabas.audit.core.tiers import CLUSTER, MIRROR, PRODUCER, kind_of

KEEP_MS = 7 * 86_400_000
CELLS_MAX = 500_000
SHARES_MAX = 1_000  # hosts and partitions that one cell tells apart
OTHERS = "(others)"
SKEW_NOTED_MS = 5_000
SKEW_PERIOD_MS = 600_000
STREAMS_MAX = 200_000
DROPPED_AT_ONCE = 20  # a part of the cells, where there are too many: the search for the oldest takes long
SLOT_MS = 10_000  # of arrivals
SLOTS_MAX = 64
ARRIVALS_KEPT_MS = 86_400_000
SHARES_ALL_MAX = 2_000_000  # of all cells
TOPIC_IDS_MAX = 100  # of one name
NEVER = 2**62
UNKNOWN = 2**62
LOGS = frozenset({PRODUCER, CLUSTER, MIRROR})  # tiers that write the log, or are it
WINDOWS_LOST = 3  # a counter that dies loses at most the counts of so many windows


class Applied(Enum):
    COUNTED = "counted"
    REPEATED = "repeated"  # its range was counted before
    HEARTBEAT = "heartbeat"


@dataclass(slots=True)
class Cell:
    """The counts of one tier for one topic and bucket."""

    width_ms: int
    end_ms: int = NO_TIME  # of the bucket
    total: Tally = field(default_factory=Tally)
    shares: dict[tuple[str, int], Tally] = field(default_factory=dict)  # by host and partition
    delays: Delays = field(default_factory=Delays)
    first_ms: int = NEVER  # when the first count arrived, by the clock of the audit topic's broker
    last_ms: int = 0
    # Records whose counts arrived behind the end of the bucket, with the time of the last one.
    arrivals: dict[int, tuple[int, int]] = field(default_factory=dict)
    firsts: dict[int, int] = field(default_factory=dict)  # by partition: the smallest offset that is known

    def add(self, host: str, partition: int, tally: Tally, arrived_ms: int) -> None:
        self.total = self.total.plus(tally)
        self.note_arrival(arrived_ms, tally.counted + tally.dropped)
        self._share((host, partition), tally)
        self.first_ms = min(self.first_ms, arrived_ms)
        self.last_ms = max(self.last_ms, arrived_ms)

    def _share(self, place: tuple[str, int], tally: Tally) -> None:
        if place not in self.shares and len(self.shares) >= SHARES_MAX:
            place = (OTHERS, NO_PARTITION)
        self.shares[place] = self.shares.get(place, Tally()).plus(tally)

    def note_first(self, partition: int, offset: int) -> None:
        known = self.firsts.get(partition)
        if known is None or offset < known:
            self.firsts[partition] = offset

    def note_arrival(self, arrived_ms: int, count: int) -> None:
        if arrived_ms < self.end_ms:
            return  # it was in time, whatever the patience
        slot = arrived_ms - arrived_ms % SLOT_MS
        known, last_ms = self.arrivals.get(slot, (0, 0))
        self.arrivals[slot] = (known + count, max(last_ms, arrived_ms))
        if len(self.arrivals) > SLOTS_MAX:  # the two oldest become one, as if both had come with the later
            oldest, next_one = sorted(self.arrivals)[:2]
            count, _ = self.arrivals.pop(oldest)
            known, last_ms = self.arrivals[next_one]
            self.arrivals[next_one] = (known + count, last_ms)

    def arrived_after(self, moment_ms: int) -> int:
        """Records whose counts arrived behind this moment, which is not before the bucket's end."""
        return sum(count for count, last_ms in self.arrivals.values() if last_ms > moment_ms)

    @property
    def hosts(self) -> list[str]:
        return sorted({host for host, _ in self.shares})

    def by_partition(self) -> dict[int, Tally] | None:
        """The counts of each partition; None if some are of partitions that are not known."""
        found: dict[int, Tally] = {}
        for (_, partition), tally in self.shares.items():
            if partition == NO_PARTITION:
                if not (tally.counted or tally.dropped):
                    continue  # records that were never acknowledged had no partition yet
                return None
            found[partition] = found.get(partition, Tally()).plus(tally)
        return found

    def merge(self, other: Cell) -> None:
        """Add the counts of another bucket, or of other streams."""
        for place, tally in other.shares.items():
            self._share(place, tally)
        self.total = self.total.plus(other.total)
        self.delays.merge(other.delays)
        self.first_ms, self.last_ms = min(self.first_ms, other.first_ms), max(self.last_ms, other.last_ms)
        for count, last_ms in other.arrivals.values():
            self.note_arrival(last_ms, count)
        for partition, offset in other.firsts.items():
            self.note_first(partition, offset)

    def fold(self) -> int:
        """Forget hosts and partitions. Returns how many shares that spares."""
        spared = len(self.shares) - 1
        self.shares, self.firsts = {(OTHERS, NO_PARTITION): self.total}, {}
        return spared


@dataclass(slots=True)
class Beginning:
    """The place from which on a tier counts a topic. Nobody there counted the records before."""

    since_ms: int = NEVER  # by the clock of the audit topic's broker
    offsets: dict[int, int] = field(default_factory=dict)  # by partition
    sees_aborted: bool = False  # some of its consumers read records that are not committed

    def note(self, partition: int, offset: int) -> None:
        known = self.offsets.get(partition)
        if known is None or offset < known:
            self.offsets[partition] = offset


@dataclass(slots=True)
class Doubt:
    """Counts of one topic in a message of a counter. If the counter died, its lost counts are not far off."""

    low_ms: int
    high_ms: int
    width_ms: int
    most: int  # records of one message


@dataclass(slots=True)
class Skew:
    """How far a host's clock is behind the broker's: a message that was on its way for long looks the same,
    so the least of some minutes counts."""

    period: int = 0
    now_ms: int = NEVER  # the least of this period
    before_ms: int = NEVER  # of the one before

    def note(self, arrived_ms: int, behind_ms: int) -> None:
        period = arrived_ms // SKEW_PERIOD_MS
        if period > self.period:
            self.period, self.before_ms, self.now_ms = period, self.now_ms, NEVER
        self.now_ms = min(self.now_ms, behind_ms)

    @property
    def least_ms(self) -> int:
        return min(self.now_ms, self.before_ms)


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
        self.skews: dict[str, Skew] = {}  # by host
        self.expired: dict[tuple[str, str], int] = {}  # by tier and topic: offsets that nobody could count
        self.lost: dict[tuple[str, str], int] = {}  # by tier and topic: records that elections have removed
        self.totals: dict[tuple[str, str], int] = {}  # by tier and topic: all records that were ever counted
        self.beginnings: dict[tuple[str, str], Beginning] = {}  # by tier and topic
        self.compacted: dict[tuple[str, str], bool] = {}  # by tier and topic: the log keeps the last of a key
        # By tier and topic: the ids that the topic had, with the first arrival of counts of each.
        self.topic_ids: dict[tuple[str, str], dict[str, int]] = {}
        self.widths_ms: dict[str, int] = {}  # by topic
        self.since_ms = 0  # older count messages are deleted
        self.repeated = 0
        self.merged_conflicts = 0  # of ledgers that were merged into this one
        self.merged_gaps: list[tuple[str, str, int]] = []
        self._streams: dict[tuple[str, str], Stream] = {}
        self._keep_ms = keep_ms
        self._cells_max = cells_max
        self._cells = 0
        self._shares = 0

    def apply(self, message: CountMessage, arrived_ms: int) -> Applied:
        if message.kind is StreamKind.SESSION:
            self._note_session(message, arrived_ms)
        if message.kind is StreamKind.SESSION:
            self.skews.setdefault(message.host, Skew()).note(arrived_ms, arrived_ms - message.time_ms)
        stream = self._stream(message.tier, message.stream)
        stream.may_have_gaps = message.kind is StreamKind.BATCHES
        fresh = stream.accept(message)
        if fresh is None:
            self.repeated += 1
            return Applied.REPEATED
        self._note_beginning(message, arrived_ms)
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
                shares = len(cell.shares)
                cell.add(message.host, partition, tally, arrived_ms)
                self._shares += len(cell.shares) - shares
                key = (message.tier, topic)
                self.totals[key] = self.totals.get(key, 0) + tally.counted
        for entry in () if message.is_correction else message.entries:  # or the records were seen before
            if entry.delays.counts or entry.first != NO_OFFSET:
                cell = self.cell(message.topic, entry.bucket_ms, message.tier, message.width_ms)
                cell.delays.merge(entry.delays)
                if entry.first != NO_OFFSET:
                    cell.note_first(entry.partition, entry.first)
        return Applied.COUNTED if message.entries else Applied.HEARTBEAT

    def cell(self, topic: str, bucket: int, tier: str, width_ms: int) -> Cell:
        """The cell of a bucket. Where tiers of a topic have buckets of different widths, all are summed up in
        the smallest ones that line up."""
        known_ms = self.widths_ms.get(topic)
        if known_ms != width_ms:
            if known_ms is not None:
                width_ms = lcm(known_ms, width_ms)
            if known_ms is not None and width_ms != known_ms:
                self._widen(topic, width_ms)
            self.widths_ms[topic] = width_ms
        if bucket != NO_TIME:
            bucket -= bucket % width_ms
        column = self.columns.setdefault((topic, bucket), {})
        cell = column.get(tier)
        if cell is None:
            cell = column[tier] = Cell(width_ms, bucket_end(bucket, width_ms))
            self._cells += 1
            if self._cells > self._cells_max:
                self._drop_oldest(topic, bucket)
        return cell

    def _widen(self, topic: str, width_ms: int) -> None:
        for place in [place for place in self.columns if place[0] == topic and place[1] != NO_TIME]:
            start = bucket_of(place[1], width_ms)
            column = self.columns.pop(place)
            wide = self.columns.setdefault((topic, start), {})
            for tier, cell in column.items():
                cell.width_ms, cell.end_ms = width_ms, bucket_end(start, width_ms)
                there = wide.setdefault(tier, cell)
                if there is not cell:
                    self._cells -= 1
                    self._shares -= len(there.shares) + len(cell.shares)
                    there.merge(cell)
                    self._shares += len(there.shares)

    def _drop_oldest(self, topic: str, bucket: int) -> None:
        """Drop whole columns until there is room for some cells more: those that were counted long ago."""
        kept = self._cells_max - self._cells_max // DROPPED_AT_ONCE
        for oldest in sorted(self.columns, key=self._last_ms_of):
            if oldest[1] != NO_TIME and oldest != (topic, bucket):
                self._drop(oldest)
                if self._cells <= kept:
                    return

    def _last_ms_of(self, place: Column) -> int:
        return max((cell.last_ms for cell in self.columns[place].values()), default=0)

    def _drop(self, place: Column) -> None:
        column = self.columns.pop(place)
        self._cells -= len(column)
        self._shares -= sum(len(cell.shares) for cell in column.values())

    def forget_before(self, now_ms: int) -> None:
        """Drop buckets and sessions that are silent for as long as the ledger keeps them, and hosts and
        partitions of the oldest buckets if there are too many."""
        before_ms = now_ms - self._keep_ms
        for place in [each for each in self.columns if self._last_ms_of(each) < before_ms]:
            if place[1] != NO_TIME:
                self._drop(place)
        for column in self.columns.values():
            for cell in column.values():
                if cell.arrivals and cell.last_ms < now_ms - ARRIVALS_KEPT_MS:
                    cell.arrivals = {}
        for key in [key for key, session in self.sessions.items() if session.seen_ms < before_ms]:
            del self.sessions[key]
            self._streams.pop(key, None)
        self._fold_oldest()

    def _fold_oldest(self) -> None:
        if self._shares <= SHARES_ALL_MAX:
            return
        for place in sorted(self.columns, key=self._last_ms_of):
            self._shares -= sum(cell.fold() for cell in self.columns[place].values())
            if self._shares <= SHARES_ALL_MAX - SHARES_ALL_MAX // DROPPED_AT_ONCE:
                return

    def _stream(self, tier: str, name: str) -> Stream:
        found = self._streams.pop((tier, name), None) or Stream()
        self._streams[tier, name] = found  # the stream that was used last is at the end
        if len(self._streams) > STREAMS_MAX:
            del self._streams[next(iter(self._streams))]
        return found

    def _note_beginning(self, message: CountMessage, arrived_ms: int) -> None:
        if message.kind is StreamKind.OFFSETS and kind_of(message.tier) in LOGS:
            self.compacted[message.tier, message.topic] = message.is_compacted
            self.note_topic_id((message.tier, message.topic), message.stream.rpartition("-")[0], arrived_ms)
        if not message.entries or message.is_correction:
            return
        found = self.beginnings.setdefault((message.tier, message.topic), Beginning())
        found.since_ms = min(found.since_ms, arrived_ms - message.age_ms)
        found.sees_aborted = found.sees_aborted or message.sees_aborted
        if kind_of(message.tier) not in LOGS:
            for entry in message.entries:
                offset = message.start if message.kind is StreamKind.OFFSETS else entry.first
                if offset != NO_OFFSET and entry.partition != NO_PARTITION:
                    found.note(entry.partition, offset)

    def note_topic_id(self, place: tuple[str, str], topic_id: str, arrived_ms: int) -> None:
        known = self.topic_ids.setdefault(place, {})
        if topic_id in known or len(known) < TOPIC_IDS_MAX:
            known[topic_id] = min(known.get(topic_id, NEVER), arrived_ms)

    def remade_ms(self, tier: str, topic: str) -> int:
        """When the last topic of this name was counted first, if there was one before; 0 if not."""
        known = self.topic_ids.get((tier, topic), {})
        return max(known.values()) if len(known) > 1 else 0

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
    def skews_ms(self) -> dict[str, int]:
        """By host: how far its clock is behind the broker's, if that is far."""
        return {
            host: each.least_ms for host, each in self.skews.items() if abs(each.least_ms) >= SKEW_NOTED_MS
        }

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

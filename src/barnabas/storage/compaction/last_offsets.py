"""The last offset of every key in the dirty part of a log, in bounded memory.

In: batches in order, until the memory is used up (then the rest is left to another pass). Out: which
records of a batch survive. Keys are kept as they are, not hashed: Python's own dictionary is exact, and
faster than any table made in Python; the price is more memory a key than Apache Kafka's 24 bytes, so that
large logs take more passes. Does not know: transactions, how batches are read and written.
"""

from bisect import bisect_left

from barnabas.records.batch import BatchHeader
from barnabas.records.record import payload
from barnabas.storage.compaction.record_bytes import keys_of, offset_deltas_of, starts_of

# Of one key: the objects of key and offset, their places in the table and in `_live`. Measured: 115 to 148
# bytes beside the key itself with 10^5 to 10^6 keys; a table that grows is there twice for a moment.
KEY_OVERHEAD_BYTES = 160
BATCH_OVERHEAD_BYTES = 100  # of a batch that is remembered for its tombstones


class LastOffsets:
    """First `add` every dirty batch, then `finish`, then ask for `survivors` of any batch up to
    `latest_offset`."""

    __slots__ = (
        "_bytes_max",
        "_live",
        "_offsets",
        "_with_tombstones",
        "first_dirty_offset",
        "invalid_records",
        "key_bytes",
        "latest_offset",
    )

    def __init__(self, first_dirty_offset: int, bytes_max: int) -> None:
        self.first_dirty_offset = first_dirty_offset
        self.latest_offset = first_dirty_offset - 1  # up to here everything was seen
        self.key_bytes = 0  # of memory, more or less
        self.invalid_records = 0  # without a key
        self._bytes_max = max(bytes_max, 1)
        self._offsets: dict[bytes | None, int] = {}
        self._with_tombstones: set[int] = set()  # base offsets of dirty batches
        self._live: list[int] = []

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return self.key_bytes >= self._bytes_max

    @property
    def utilization(self) -> float:
        return min(self.key_bytes / self._bytes_max, 1.0)

    def add(self, header: BatchHeader, batch: memoryview) -> None:
        """The records of a dirty batch, none of which was aborted."""
        data = payload(batch, header)
        keys, tombstones = keys_of(data, header.record_count)
        offsets = offsets_of(header, data)
        known, found = len(self._offsets), self._offsets
        if header.base_offset >= self.first_dirty_offset:
            found.update(zip(keys, offsets, strict=True))
        else:
            for key, offset in zip(keys, offsets, strict=True):
                if offset >= self.first_dirty_offset:
                    found[key] = offset
        if found.pop(None, None) is not None:  # records without a key survive nothing
            self.invalid_records += keys.count(None)
        added = len(found) - known
        if added > 0:
            average = sum(map(len, filter(None, keys))) / len(keys)
            self.key_bytes += int(added * (KEY_OVERHEAD_BYTES + average))
        if tombstones:
            self._with_tombstones.add(header.base_offset)
            self.key_bytes += BATCH_OVERHEAD_BYTES

    def finish(self) -> None:
        """Everything is added."""
        self._live = sorted(self._offsets.values())

    # Asking

    def survivors(self, header: BatchHeader, batch: memoryview, now_ms: int) -> "Survivors | None":
        """Which records of a batch outlive it; None when it stays as it is."""
        count, base_offset = header.record_count, header.base_offset
        last_offset = base_offset + header.last_offset_delta
        if base_offset > self.latest_offset:
            return None  # not looked at in this pass
        if (
            base_offset >= self.first_dirty_offset
            and last_offset <= self.latest_offset
            and base_offset not in self._with_tombstones
        ):
            # Dirty: its live offsets are known, which mostly says all there is to know.
            live = self._live
            first = bisect_left(live, base_offset)
            last = bisect_left(live, last_offset + 1, first)
            if last == first:
                return NO_SURVIVORS
            return None if last - first == count else self._survivors_at(header, batch, live[first:last])
        horizon_ms = header.delete_horizon_ms
        expired = horizon_ms is not None and horizon_ms <= now_ms
        data = payload(batch, header)
        keys, tombstones = keys_of(data, count)
        if (
            header.last_offset < self.first_dirty_offset
            and not (tombstones and expired)
            and self._offsets.keys().isdisjoint(keys)
            and None not in keys
        ):
            return Survivors(count, None, bool(tombstones), data)  # clean before, and nothing newer since
        offsets = offsets_of(header, data)
        gone = set(tombstones) if expired else ()
        get = self._offsets.get
        kept = [
            index
            for index, (key, offset) in enumerate(zip(keys, offsets, strict=True))
            if offset > self.latest_offset
            or (key is not None and get(key, -1) <= offset and index not in gone)
        ]
        has_tombstones = bool(tombstones) and not expired and not set(kept).isdisjoint(tombstones)
        return Survivors(count, kept if len(kept) < count else None, has_tombstones, data)

    def _survivors_at(self, header: BatchHeader, batch: memoryview, live: list[int]) -> "Survivors":
        data, count, base_offset = payload(batch, header), header.record_count, header.base_offset
        if header.last_offset_delta + 1 == count:
            return Survivors(count, [offset - base_offset for offset in live], False, data)
        wanted, offsets = set(live), offsets_of(header, data)
        return Survivors(count, [i for i, offset in enumerate(offsets) if offset in wanted], False, data)


class Survivors:
    """`kept` lists records by their place in the batch; None means all of them. `has_tombstones`: some of
    the kept ones have no value, and leave when their time has come."""

    __slots__ = ("data", "has_tombstones", "kept", "kept_count")

    def __init__(
        self, count: int, kept: list[int] | None, has_tombstones: bool, data: bytes | None = None
    ) -> None:
        self.kept = kept
        self.kept_count = count if kept is None else len(kept)
        self.has_tombstones = has_tombstones
        self.data = data  # decompressed, where somebody had to look


NO_SURVIVORS = Survivors(0, [], False)


def offsets_of(header: BatchHeader, data: bytes) -> "range | list[int]":
    """The offset of every record."""
    base_offset = header.base_offset
    if header.last_offset_delta + 1 == header.record_count:  # none is missing
        return range(base_offset, header.next_offset)
    starts = starts_of(data, header.record_count)
    return [base_offset + delta for delta in offset_deltas_of(data, starts)]

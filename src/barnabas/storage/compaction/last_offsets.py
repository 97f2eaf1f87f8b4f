"""The last offset of every key in the dirty part of a log, in bounded memory.

In: batches in order, until the memory is used up (another pass cleans the rest). Out: the records of a batch
that survive. Keys are stored as they are, not hashed: a Python dictionary is exact, and faster than any table
written in Python. It needs more memory for a key than Apache Kafka's 24 bytes, so large logs take more
passes.
Does not know: transactions, how batches are read and written.
"""

from bisect import bisect_left

from barnabas.records.batch import BatchHeader
from barnabas.records.record import payload
from barnabas.storage.compaction.record_bytes import keys_of, offset_deltas_of, starts_of

# For one key: the key and offset objects, their slots in the dictionary and in `_live`. Measured: 115 to 148
# bytes in addition to the key itself with 10^5 to 10^6 keys. A growing dictionary exists twice for a moment.
KEY_OVERHEAD_BYTES = 160
BATCH_OVERHEAD_BYTES = 100  # memory for a batch that is remembered because it has tombstones


class LastOffsets:
    """Usage: `add` every dirty batch, call `finish`, then get the `survivors` of any batch up to
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
        self.latest_offset = first_dirty_offset - 1  # all records up to here were added
        self.key_bytes = 0  # estimated memory
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
        """Add the records of a dirty batch. Batches of aborted transactions are not added."""
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
        if found.pop(None, None) is not None:  # records without a key are removed
            self.invalid_records += keys.count(None)
        added = len(found) - known
        if added > 0:
            average = sum(map(len, filter(None, keys))) / len(keys)
            self.key_bytes += int(added * (KEY_OVERHEAD_BYTES + average))
        if tombstones:
            self._with_tombstones.add(header.base_offset)
            self.key_bytes += BATCH_OVERHEAD_BYTES

    def finish(self) -> None:
        """Call this after the last `add`."""
        self._live = sorted(self._offsets.values())

    # Queries

    def survivors(self, header: BatchHeader, batch: memoryview, now_ms: int) -> "Survivors | None":
        """The records of a batch that stay; None when the batch stays unchanged."""
        count, base_offset = header.record_count, header.base_offset
        last_offset = base_offset + header.last_offset_delta
        if base_offset > self.latest_offset:
            return None  # not part of this pass
        if (
            base_offset >= self.first_dirty_offset
            and last_offset <= self.latest_offset
            and base_offset not in self._with_tombstones
        ):
            # Dirty: its live offsets are known, so its records rarely have to be decoded again.
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
            return Survivors(count, None, bool(tombstones), data)  # already clean, and no newer records
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
    """The records of a batch that stay. `kept` lists their positions in the batch; None means all.
    `has_tombstones`: some of them have no value, and are removed at the delete horizon."""

    __slots__ = ("data", "has_tombstones", "kept", "kept_count")

    def __init__(
        self, count: int, kept: list[int] | None, has_tombstones: bool, data: bytes | None = None
    ) -> None:
        self.kept = kept
        self.kept_count = count if kept is None else len(kept)
        self.has_tombstones = has_tombstones
        self.data = data  # decompressed records, if they had to be decoded


NO_SURVIVORS = Survivors(0, [], False)


def offsets_of(header: BatchHeader, data: bytes) -> "range | list[int]":
    """The offset of every record."""
    base_offset = header.base_offset
    if header.last_offset_delta + 1 == header.record_count:  # no record was removed
        return range(base_offset, header.next_offset)
    starts = starts_of(data, header.record_count)
    return [base_offset + delta for delta in offset_deltas_of(data, starts)]

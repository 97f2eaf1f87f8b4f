"""Records of `__consumer_offsets` become commits.

In: keys and values of records, with their offsets. Out: commits in a `ClusterLag`, and the ids of groups
whose members may have changed. A group commits to the same partitions again and again, so the bytes of a key
lead straight to what is known of its group and partition: most records cost two look-ups and two unpackings.
Does not know: fetching, clocks.
"""

from __future__ import annotations

from struct import Struct, error

from barnabas.groups.basics.records import decode
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import GroupPartition
from barnabas.protocol import ProtocolError
from barnabas.protocol.log_records.consumer_offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

HEAD = Struct(">hq")  # version, offset
SIZE = Struct(">h")
TIME = Struct(">q")
OFFSET_TYPES = (b"\0\0", b"\0\1")
KEYS_MAX = 2_000_000  # more keys than any cluster has: then the index is made anew


class CommitRecords:
    """Applies records to the lag of a cluster."""

    def __init__(self, cluster: ClusterLag) -> None:
        self._cluster = cluster
        self._places: dict[bytes, GroupPartition] = {}
        self.records_read = 0
        self.records_damaged = 0

    def apply(self, key: bytes | None, value: bytes | None, order: int, observed_ms: int) -> str | None:
        """Returns the id of the group if its members may have changed."""
        self.records_read += 1
        if key is None or key[:2] not in OFFSET_TYPES:
            return self._group_of(key)
        place = self._places.get(key)
        if place is None or place.is_gone or value is None:
            self._apply_whole(key, value, order, observed_ms)
            return None
        try:
            offset, timestamp_ms = commit_of(value)
        except (error, IndexError):
            self._apply_whole(key, value, order, observed_ms)
            return None
        self._cluster.commit(place, offset, timestamp_ms, observed_ms, order)
        return None

    def _apply_whole(self, key: bytes, value: bytes | None, order: int, observed_ms: int) -> None:
        """Decode the record as the protocol describes it."""
        try:
            entry = decode(key, value)
        except ProtocolError:
            self.records_damaged += 1
            return
        if entry is None or not isinstance(entry.key, OffsetCommitKey | LegacyOffsetCommitKey):
            return
        group, topic, partition = entry.key.group, entry.key.topic, entry.key.partition
        if not isinstance(entry.value, OffsetCommitValue | LegacyOffsetCommitValue):
            self._places.pop(key, None)
            self._cluster.remove_commits(group, topic, partition)
            return
        place = self._cluster.place(group, topic, partition)
        if place is None:
            return
        if len(self._places) >= KEYS_MAX:
            self._places.clear()
        self._places[bytes(key)] = place
        self._cluster.commit(place, entry.value.offset, entry.value.commit_timestamp, observed_ms, order)

    def _group_of(self, key: bytes | None) -> str | None:
        """The id of the group that a record about members names; it is the first field of each such key."""
        if key is None or len(key) < 4:
            self.records_damaged += 1
            return None
        size = SIZE.unpack_from(key, 2)[0]
        return bytes(key[4 : 4 + size]).decode(errors="replace") if size > 0 else None


def commit_of(value: bytes) -> tuple[int, int]:
    """The offset and the time of a commit. IndexError or struct.error if the value has another form."""
    version, offset = HEAD.unpack_from(value)
    if version == 4:
        size = value[14]  # one more than the bytes of the metadata
        if size > 127:
            raise IndexError
        at = 15 + size - 1 if size else 15
    elif version == 3:
        at = 16 + SIZE.unpack_from(value, 14)[0]
    elif 0 <= version <= 2:
        at = 12 + SIZE.unpack_from(value, 10)[0]
    else:
        raise IndexError
    return offset, TIME.unpack_from(value, at)[0]

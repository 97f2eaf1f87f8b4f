"""A shard of groups comes back: the records of its partition, replayed from the first to the last.

In: a log (ours or Apache Kafka's, compacted or not), an empty shard. Out: the shard as it was. Reads chunk by
chunk and belongs in a thread; nobody else knows the shard meanwhile. Offsets committed in transactions count
when the marker says so.
Does not know: what the records mean, leadership.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.groups.records import Entry, decode
from barnabas.records.batch import BatchHeader, headers
from barnabas.records.control import read_end_marker
from barnabas.records.record import iter_records

if TYPE_CHECKING:
    from barnabas.groups.shard import GroupShard
    from barnabas.storage.log import Log

log = logging.getLogger("barnabas.groups")
CHUNK_BYTES_MAX = 1 << 20  # a chunk holds the interpreter's lock for some of its time: others get turns
UNKNOWN_NAMED_MAX = 10  # records of unknown types that are named in the log


class Loading:
    """One replay. `load` may be called again for what was appended since; `stop` ends it early."""

    __slots__ = ("_log", "_newer", "_open", "_shard", "_unknown", "is_stopped", "next_offset", "records")

    def __init__(self, partition_log: Log, shard: GroupShard) -> None:
        self._log = partition_log
        self._shard = shard
        self.next_offset = partition_log.log_start_offset
        self.records = 0
        self.is_stopped = False
        self._unknown = 0
        self._open: dict[int, list[tuple[int, bytes, Entry]]] = {}  # by producer: not yet committed
        self._newer: dict[bytes, int] = {}  # keys written outside of transactions while one was open

    def load_chunk(self, bytes_max: int) -> bool:
        """Replay some; False when everything that is in the file was."""
        upper_offset = self._log.written_offset
        self.next_offset = max(self.next_offset, self._log.log_start_offset)
        if self.is_stopped or self.next_offset >= upper_offset:
            return False
        found = self._log.read_cold(self.next_offset, min(bytes_max, CHUNK_BYTES_MAX), upper_offset)
        data = found.read()
        for position, header in headers(data):
            if header.next_offset > self.next_offset:
                self._replay(data, position, header)
                self.next_offset = header.next_offset
        if not data:
            self.next_offset = upper_offset  # the end was compacted away
        return self.next_offset < upper_offset

    def _replay(self, data: bytes, position: int, header: BatchHeader) -> None:
        if header.is_control:
            marker = read_end_marker(data, position=position)
            if marker is not None:
                self._end_transaction(header.producer_id, aborted=marker.aborted)
            return
        apply = self._shard.apply
        pending = self._open.setdefault(header.producer_id, []) if header.is_transactional else None
        for record in iter_records(data, position=position):
            if record.offset < self.next_offset or record.key is None:
                continue
            entry = decode(record.key, record.value)
            self.records += 1
            if entry is None:
                self._skipped(record.key, record.offset)
            elif pending is not None:
                pending.append((record.offset, record.key, entry))
            else:
                if self._open:
                    self._newer[record.key] = record.offset
                apply(entry)

    def _end_transaction(self, producer_id: int, *, aborted: bool) -> None:
        for offset, key, entry in self._open.pop(producer_id, ()):
            if not aborted and self._newer.get(key, -1) < offset:
                self._shard.apply(entry)
        if not self._open:
            self._newer.clear()

    def _skipped(self, key: bytes, offset: int) -> None:
        self._unknown += 1
        if self._unknown <= UNKNOWN_NAMED_MAX:
            log.warning(
                "%s: the record at offset %d is of the unknown type %d, it is left alone",
                self._log.topic_partition,
                offset,
                int.from_bytes(key[:2], "big", signed=True),
            )

"""A coordinator's shard comes back: the records of its partition, replayed from the first to the last.

In: a log (ours or Apache Kafka's, compacted or not), an empty shard. Out: the shard as it was. Reads chunk by
chunk and belongs in a thread; nobody else knows the shard meanwhile.
Does not know: what the records mean, leadership.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.protocol import KafkaError, ProtocolError
from barnabas.records.batch import BatchHeader, headers
from barnabas.records.record import iter_records

if TYPE_CHECKING:
    from barnabas.storage.log import Log

log = logging.getLogger("barnabas.coordinator")
CHUNK_BYTES_MAX = 1 << 20  # a chunk holds the interpreter's lock for some of its time: others get turns
UNKNOWN_NAMED_MAX = 10  # records of unknown types that are named in the log

Decode = Callable[[bytes, bytes | None], Any]
"""An entry of a shard, or None for a record of an unknown type."""


class Loading:
    """One replay. `load_chunk` may be called again for what was appended since, `is_stopped` ends it."""

    __slots__ = ("_apply", "_decode", "_log", "_unknown", "is_stopped", "next_offset", "records")

    def __init__(self, partition_log: Log, decode: Decode, apply: Callable[[Any], None]) -> None:
        self._log = partition_log
        self._decode = decode
        self._apply = apply
        self.next_offset = partition_log.log_start_offset
        self.records = 0
        self.is_stopped = False
        self._unknown = 0

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
                try:
                    self.replay(data, position, header)
                except (KafkaError, ProtocolError, ValueError, IndexError) as error:
                    where = f"offsets {header.base_offset} to {header.last_offset}"
                    raise ValueError(f"the batch of {where} cannot be read: {error}") from error
                self.next_offset = header.next_offset
        if not data:
            self.next_offset = upper_offset  # the end was compacted away
        return self.next_offset < upper_offset

    def replay(self, data: bytes, position: int, header: BatchHeader) -> None:
        """One batch."""
        if header.is_control:
            return
        apply = self._apply
        for _, _, entry in self.entries(data, position):
            apply(entry)

    def entries(self, data: bytes, position: int) -> list[tuple[int, bytes, Any]]:
        """Offset, key and entry of the records of a batch that are known and not yet replayed."""
        found = []
        decode = self._decode
        for record in iter_records(data, position=position):
            if record.offset < self.next_offset or record.key is None:
                continue
            self.records += 1
            entry = decode(record.key, record.value)
            if entry is None:
                self._skipped(record.key, record.offset)
            else:
                found.append((record.offset, record.key, entry))
        return found

    def _skipped(self, key: bytes, offset: int) -> None:
        self._unknown += 1
        if self._unknown <= UNKNOWN_NAMED_MAX:
            log.warning(
                "%s: the record at offset %d is of the unknown type %d, it is left alone",
                self._log.topic_partition,
                offset,
                int.from_bytes(key[:2], "big", signed=True),
            )

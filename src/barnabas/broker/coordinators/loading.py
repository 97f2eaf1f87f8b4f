"""Loading a coordinator's shard: the records of its partition are replayed from the first to the last.

In: a log (ours or Apache Kafka's, compacted or not), an empty shard. Out: the shard as it was. A thread reads
a chunk, and the event loop replays it in pieces: replaying in a thread would make the loop wait for the
interpreter's lock after each of its system calls. No request reaches the shard meanwhile.
Does not know: what the records mean, leadership.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.protocol import KafkaError, ProtocolError
from barnabas.records.batch import BatchHeader, headers
from barnabas.records.record import iter_records

if TYPE_CHECKING:
    from barnabas.metadata.steps import Steps
    from barnabas.storage.logs.log import Log

log = logging.getLogger("barnabas.coordinator")
CHUNK_BYTES_MAX = 1 << 20
UNKNOWN_NAMED_MAX = 10  # records of unknown types that get a log line each

Decode = Callable[[bytes, bytes | None], Any]
"""An entry of a shard, or None for a record of an unknown type."""


class Loading:
    """One replay: call `read`, then `replay` with its result, until `next_offset` is the end of the log."""

    __slots__ = ("_apply", "_decode", "_log", "_unknown", "next_offset", "records")

    def __init__(self, partition_log: Log, decode: Decode, apply: Callable[[Any], None]) -> None:
        self._log = partition_log
        self._decode = decode
        self._apply = apply
        self.next_offset = partition_log.log_start_offset
        self.records = 0
        self._unknown = 0

    def read(self, bytes_max: int) -> tuple[bytes, int]:
        """Read some batches. Out: their bytes, and the end of the log, where replay continues if there are
        none."""
        upper_offset = self._log.written_offset
        start_offset = max(self.next_offset, self._log.log_start_offset)
        if start_offset >= upper_offset:
            return b"", start_offset
        found = self._log.read_cold(start_offset, min(bytes_max, CHUNK_BYTES_MAX), upper_offset)
        return found.read(), upper_offset

    def replay(self, data: bytes, upper_offset: int) -> Steps[None]:
        for position, header in headers(data):
            if header.next_offset > self.next_offset:
                try:
                    yield from self.replay_batch(data, position, header)
                except (KafkaError, ProtocolError, ValueError, IndexError) as error:
                    where = f"offsets {header.base_offset} to {header.last_offset}"
                    raise ValueError(f"the batch of {where} cannot be read: {error}") from error
                self.next_offset = header.next_offset
        if not data:
            self.next_offset = upper_offset  # compaction removed the last batches

    def replay_batch(self, data: bytes, position: int, header: BatchHeader) -> Steps[None]:
        if header.is_control:
            return
        apply = self._apply
        for entry in self.entries(data, position):
            apply(entry)
            yield

    def entries(self, data: bytes, position: int) -> Iterator[Any]:
        """The records of a batch that are known and not yet replayed."""
        decode = self._decode
        for record in iter_records(data, position=position):
            if record.offset < self.next_offset or record.key is None:
                continue
            self.records += 1
            entry = decode(record.key, record.value)
            if entry is None:
                self._skipped(record.key, record.offset)
            else:
                yield entry

    def _skipped(self, key: bytes, offset: int) -> None:
        self._unknown += 1
        if self._unknown <= UNKNOWN_NAMED_MAX:
            log.warning(
                "%s: skipped the record at offset %d, which has the unknown type %d",
                self._log.topic_partition,
                offset,
                int.from_bytes(key[:2], "big", signed=True),
            )

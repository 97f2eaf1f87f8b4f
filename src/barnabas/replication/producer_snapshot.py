"""The content of a `.snapshot` file: a partition's producers, byte for byte as Apache Kafka stores them.

In: producer states, or the bytes of a file. Out: the bytes, or the states. ValueError for a damaged file: the
caller deletes it and recovers from an older one or from the log.
Does not know: file names, when to write, which snapshots are obsolete.
"""

from collections.abc import Iterable
from struct import Struct

from barnabas.records.crc32c import Buffer, crc32c
from barnabas.replication.producer_state import BatchMetadata, ProducerState

VERSION = 1
_prefix = Struct(">hI")  # version, checksum of all bytes after it
_count = Struct(">i")
# The fields of `ProducerSnapshot.ProducerEntry`. A partition may have tens of thousands of producers;
# encoding them without message objects takes a third of the time.
_entry = Struct(">qhiqiqiq")
NO_BATCH = BatchMetadata(-1, -1, 0, -1)


def encode(states: Iterable[ProducerState]) -> bytes:
    pack = _entry.pack
    parts = [b""]  # the count
    for state in states:
        last_sequence, last_offset, offset_delta, _ = state.batches[-1] if state.batches else NO_BATCH
        parts.append(
            pack(
                state.producer_id,
                state.producer_epoch,
                last_sequence,
                last_offset,
                offset_delta,
                state.last_timestamp,
                state.coordinator_epoch,
                state.txn_first_offset,
            )
        )
    parts[0] = _count.pack(len(parts) - 1)
    body = b"".join(parts)
    return _prefix.pack(VERSION, crc32c(body)) + body


def decode(data: Buffer) -> list[ProducerState]:
    """The states in the order of the file, including expired ones."""
    if len(data) < _prefix.size:
        raise ValueError(f"a producer snapshot of {len(data)} bytes is cut off")
    version, crc = _prefix.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"producer snapshot of unknown version {version}")
    body = memoryview(data)[_prefix.size :]
    computed = crc32c(body)
    if computed != crc:
        raise ValueError(f"producer snapshot is corrupt (stored crc = {crc}, computed crc = {computed})")
    count = _count.unpack_from(body)[0] if len(body) >= _count.size else -1
    entries = body[_count.size : _count.size + count * _entry.size]
    if count < 0 or len(entries) < count * _entry.size:
        raise ValueError(f"producer snapshot is malformed: {count} producers in {len(body)} bytes")
    return [
        ProducerState(
            producer_id,
            epoch,
            coordinator_epoch,
            timestamp,
            max(txn_first_offset, -1),
            BatchMetadata(last_sequence, last_offset, offset_delta, timestamp) if last_offset >= 0 else None,
        )
        for (
            producer_id,
            epoch,
            last_sequence,
            last_offset,
            offset_delta,
            timestamp,
            coordinator_epoch,
            txn_first_offset,
        ) in _entry.iter_unpack(entries)
    ]

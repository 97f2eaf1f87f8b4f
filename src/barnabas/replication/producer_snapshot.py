"""The content of a `.snapshot` file: a partition's producers as Apache Kafka stores them, byte for byte.

In: producer states, or a file's bytes. Out: the bytes, or the states. Damage is a ValueError: the caller
deletes the file and recovers from an older one or from the log.
Does not know: file names, when to write, which snapshots are obsolete.
"""

from collections.abc import Iterable
from struct import Struct

from barnabas.protocol import ProtocolError
from barnabas.protocol.log_records.storage import ProducerSnapshot
from barnabas.records.crc32c import Buffer, crc32c
from barnabas.replication.producer_state import BatchMetadata, ProducerState

VERSION = 1
_prefix = Struct(">hI")  # version, checksum of everything behind it


def encode(states: Iterable[ProducerState]) -> bytes:
    entries = []
    for state in states:
        last = state.batches[-1] if state.batches else BatchMetadata(-1, -1, 0, -1)
        entries.append(
            ProducerSnapshot.ProducerEntry(
                producer_id=state.producer_id,
                epoch=state.producer_epoch,
                last_sequence=last.last_sequence,
                last_offset=last.last_offset,
                offset_delta=last.offset_delta,
                timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_first_offset=state.txn_first_offset,
            )
        )
    body = ProducerSnapshot(crc=0, producer_entries=entries).encode(VERSION)[4:]
    return _prefix.pack(VERSION, crc32c(body)) + body


def decode(data: Buffer) -> list[ProducerState]:
    """The states in the order of the file; expired ones included."""
    if len(data) < _prefix.size:
        raise ValueError(f"a producer snapshot of {len(data)} bytes is cut off")
    version, crc = _prefix.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"producer snapshot of unknown version {version}")
    computed = crc32c(memoryview(data)[_prefix.size :])
    if computed != crc:
        raise ValueError(f"producer snapshot is corrupt (stored crc = {crc}, computed crc = {computed})")
    try:
        snapshot = ProducerSnapshot.decode(memoryview(data)[2:], version)
    except ProtocolError as error:
        raise ValueError(f"producer snapshot is malformed: {error}") from error
    return [
        ProducerState(
            entry.producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.timestamp,
            max(entry.current_txn_first_offset, -1),
            BatchMetadata(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
            if entry.last_offset >= 0
            else None,
        )
        for entry in snapshot.producer_entries
    ]

"""Batches and logs for these tests: small, deterministic, and quick to compare."""

from pathlib import Path

from barnabas.records.batch import BatchHeader, headers
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.record import Record, build_batch
from barnabas.storage import Log, LogSettings
from barnabas.storage.segments.transaction_index import AbortedTransaction

NOW_MS = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=2000, index_interval_bytes=200)


def batch_at(
    offset: int,
    count: int = 1,
    *,
    value_bytes: int = 20,
    timestamp: int | None = None,
    epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    stamp = NOW_MS + offset if timestamp is None else timestamp
    records = [
        Record(timestamp=stamp + i if stamp >= 0 else stamp, value=bytes([(offset + i) % 256]) * value_bytes)
        for i in range(count)
    ]
    return build_batch(
        records,
        base_offset=offset,
        partition_leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch if producer_id >= 0 else -1,
        base_sequence=sequence,
        transactional=transactional,
    )


def stage(log: Log, batch: bytearray, now_ms: int = NOW_MS) -> BatchHeader:
    """What a broker does with a batch: stage it, then tell the producers."""
    view = memoryview(batch)
    header = BatchHeader(view)
    log.stage(view, header, now_ms)
    if header.producer_id >= 0 and not header.is_control:
        log.producers.apply(header)
    return header


def append(log: Log, *batches: bytearray, now_ms: int = NOW_MS) -> None:
    for batch in batches:
        stage(log, batch, now_ms)
    log.write_staged()


def append_marker(log: Log, producer_id: int, *, aborted: bool, epoch: int = 0) -> None:
    marker = build_end_marker(
        EndMarker(aborted, 0),
        producer_id,
        0,
        NOW_MS,
        base_offset=log.end_offset,
        partition_leader_epoch=epoch,
    )
    header = stage(log, marker)
    completed = log.producers.apply_marker(header, 0, aborted=aborted)
    if completed is not None and aborted:
        log.add_aborted(
            AbortedTransaction(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                log.producers.last_stable_offset_after(completed),
            )
        )
    log.write_staged()


def fill(log: Log, batches: int, *, records: int = 1, value_bytes: int = 20, epoch: int = 0) -> list[bytes]:
    """Append that many batches, one write each; what was appended."""
    appended = []
    for _ in range(batches):
        batch = batch_at(log.end_offset, records, value_bytes=value_bytes, epoch=epoch)
        append(log, batch)
        appended.append(bytes(batch))
    return appended


def read_all(log: Log, max_bytes: int = 10_000) -> list[bytes]:
    """Every batch from the log's start, one read after the other as a consumer would."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.written_offset:
        data = log.read(offset, max_bytes).read()
        assert data, f"nothing at offset {offset} of {log}"
        for position, header in headers(data):
            found.append(data[position : position + header.size])
            offset = header.next_offset
    return found


def files(directory: str) -> dict[str, bytes]:
    """The files of a partition's folder, but for those that say nothing of its content."""
    return {path.name: path.read_bytes() for path in sorted(Path(directory).iterdir())}

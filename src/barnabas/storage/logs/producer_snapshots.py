"""Producer snapshots of a log: the `<offset>.snapshot` files, and replay of batches after a snapshot.

In: a log's folder and segments. Out: `ProducerStates` at an offset. A snapshot is written at every roll and
at close, so that a restart reads at most one segment. A damaged snapshot is deleted and an older one is used.
Does not know: sequence checks, expiry, the content of a snapshot.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.records.batch import BatchHeader
from barnabas.records.control import read_end_marker
from barnabas.records.crc32c import Buffer
from barnabas.replication.producer_snapshot import decode, encode
from barnabas.replication.producers import ProducerStates
from barnabas.storage.files import names
from barnabas.storage.segments.segment import CorruptLog, Segment
from barnabas.storage.segments.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from barnabas.storage.logs.context import LogContext

logger = logging.getLogger(__name__)


def path_of(directory: str, offset: int) -> str:
    return f"{directory}/{names.offset_name(offset, names.SNAPSHOT)}"


def offsets(context: "LogContext", directory: str) -> list[int]:
    """The offsets of all snapshots, in order."""
    found = (
        names.offset_of(name) for name in context.disk.listdir(directory) if name.endswith(names.SNAPSHOT)
    )
    return sorted(offset for offset in found if offset is not None)


def store(
    context: "LogContext", directory: str, producers: ProducerStates, offset: int, *, sync: bool
) -> None:
    context.disk.create(path_of(directory, offset), encode(producers), sync=sync)


def delete(context: "LogContext", directory: str, offset: int) -> None:
    try:
        context.disk.unlink(path_of(directory, offset))
    except FileNotFoundError:
        pass


def rename_to_deleted(context: "LogContext", directory: str, offset: int) -> list[str]:
    """Rename a snapshot to `.deleted`. Returns its new path, or nothing if there was none."""
    path = path_of(directory, offset)
    try:
        context.disk.replace(path, path + names.DELETED)
    except FileNotFoundError:
        return []
    return [path + names.DELETED]


def load(
    context: "LogContext", directory: str, segments: list[Segment], log_start_offset: int, end_offset: int
) -> ProducerStates:
    """Load the producers at `end_offset`: the newest valid snapshot plus the batches after it."""
    producers = ProducerStates(log_start_offset)
    for offset in reversed(offsets(context, directory)):
        if offset > end_offset:
            continue
        try:
            producers.reset(offset, decode(context.disk.read(path_of(directory, offset))))
            break
        except (ValueError, CorruptLog) as error:
            logger.warning("Deleting %s: %s", path_of(directory, offset), error)
            delete(context, directory, offset)
    start = producers.end_offset
    for index, segment in enumerate(segments):
        if start >= end_offset or segment.base_offset >= end_offset:
            break
        if index + 1 < len(segments) and segments[index + 1].base_offset <= start:
            continue
        position = segment.offset_index().position_before(start)
        for at, header in segment.producer_headers(position, end_offset):
            if header.base_offset >= start:
                replay(producers, segment, at, header)
    producers.end_offset = end_offset
    return producers


def replay(
    producers: ProducerStates,
    segment: Segment,
    position: int,
    header: BatchHeader,
    batch: Buffer | None = None,
) -> AbortedTransaction | None:
    """Apply a batch of the log. Returns the aborted transaction if the batch is its abort marker."""
    if header.producer_id < 0:
        producers.end_offset = header.next_offset
        return None
    if not header.is_control:
        producers.apply(header)
        return None
    marker = read_end_marker(batch if batch is not None else segment.pread(header.size, position))
    if marker is None:
        producers.end_offset = header.next_offset
        return None
    completed = producers.apply_marker(header, marker.coordinator_epoch, aborted=marker.aborted)
    if completed is None or not marker.aborted:
        return None
    return AbortedTransaction(
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        producers.last_stable_offset_after(completed),
    )

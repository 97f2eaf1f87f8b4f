"""Recovery of a log after a crash, and the files that a crash leaves behind.

In: a partition's folder and the recovery point. Out: segments, end offset, producers and leader epochs. Every
batch from the recovery point on is checked. The log ends before the first torn or damaged batch: later
segments are deleted, and indexes, producers and leader epochs are rebuilt from the remaining batches.
Does not know: other partitions, the checkpoint files.
"""

import logging
import zlib
from collections.abc import Iterator
from struct import Struct

from barnabas.protocol import KafkaError
from barnabas.records.batch import BATCH_OVERHEAD, MAGIC, MAGIC_AT, BatchHeader, validate
from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.replication.producers import ProducerStates
from barnabas.storage.files import checkpoints, names
from barnabas.storage.files.checkpoints import CorruptCheckpoint
from barnabas.storage.files.errors import StorageError
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.logs.context import LogContext
from barnabas.storage.segments.index import NO_TIMESTAMP, RELATIVE_OFFSET_MAX, OffsetIndex, TimeIndex
from barnabas.storage.segments.segment import BATCH_LENGTH_MIN, CorruptLog, Segment
from barnabas.storage.segments.settings import LogSettings

CHUNK_BYTES = 4 << 20  # bytes to read at once; a larger batch is read whole
LEGACY_OVERHEAD = 26

_placement = Struct(">qiiB").unpack_from  # base offset, length, epoch (or old checksum), magic

logger = logging.getLogger(__name__)


def clear_leftovers(context: LogContext, directory: str, files: dict[str, int]) -> dict[str, int]:
    """Finish or undo deletions and compactions that a crash interrupted. Returns the remaining files with
    their sizes."""
    if not any(name.endswith((names.DELETED, names.CLEANED, names.SWAP, ".tmp")) for name in files):
        return files
    disk = context.disk
    cleaned = [name for name in files if name.endswith(names.CLEANED)]
    swapped = [name for name in files if name.endswith(names.SWAP)]
    first_cleaned = min((names.offset_of(name) or 0 for name in cleaned), default=None)
    doomed = [name for name in files if name.endswith((names.DELETED, ".tmp"))] + cleaned
    if first_cleaned is not None:  # the crash came before the swap was complete: keep the old segments
        doomed += [name for name in swapped if (names.offset_of(name) or 0) >= first_cleaned]
    for name in doomed:
        disk.unlink(f"{directory}/{name}")
    swapped = [name for name in swapped if name not in doomed]
    replaced = _replaced_by(context, directory, files, swapped)
    for name in files:
        offset = names.offset_of(name)
        if offset in replaced and not name.endswith(names.SWAP) and name not in doomed:
            disk.unlink(f"{directory}/{name}")
    for name in swapped:
        disk.replace(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    return disk.sizes(directory)


def _replaced_by(context: LogContext, directory: str, files: dict[str, int], swapped: list[str]) -> range:
    """The range of base offsets that complete swap files replace."""
    first, end = None, 0
    for name in swapped:
        base_offset = names.offset_of(name)
        if base_offset is None or not name.endswith(names.LOG + names.SWAP):
            continue
        segment = Segment(context, directory, base_offset, files[name], names.SWAP)
        first = base_offset if first is None else min(first, base_offset)
        for _, header in segment.headers():
            end = max(end, header.next_offset)
    return range(0) if first is None else range(first, end)


def find_segments(context: LogContext, directory: str, files: dict[str, int]) -> list[Segment]:
    """The segments of a folder in order. Deletes index files without a log file."""
    segments = []
    for name, size in sorted(files.items()):
        offset = names.offset_of(name)
        if offset is None:
            continue
        if name.endswith(names.LOG):
            segments.append(Segment(context, directory, offset, size))
        elif name.endswith(names.SEGMENT_SUFFIXES) and names.offset_name(offset, names.LOG) not in files:
            logger.warning("Deleting %s/%s: its log file is missing", directory, name)
            context.disk.unlink(f"{directory}/{name}")
    return segments


class Recovery:
    """The recovery of one log after a crash."""

    def __init__(
        self,
        context: LogContext,
        directory: str,
        settings: LogSettings,
        segments: list[Segment],
        log_start: int,
    ) -> None:
        self.context = context
        self.directory = directory
        self.settings = settings
        self.segments = segments
        self.log_start_offset = log_start
        self.producers = ProducerStates(log_start)
        try:
            self.epochs = checkpoints.load_epochs(context.disk, directory)
        except CorruptCheckpoint as error:
            logger.warning(
                "The leader epoch checkpoint of %s is damaged (%s): rebuilding it from the log",
                directory,
                error,
            )
            self.epochs = LeaderEpochs()

    def run(self, recovery_point: int) -> int:
        """Check all segments from the one that holds the recovery point on. Returns the end offset."""
        segments = self.segments
        first = 0
        while first + 1 < len(segments) and segments[first + 1].base_offset <= recovery_point:
            first += 1
        if len(self.epochs) == 0:
            first = 0  # leader epochs are rebuilt from all batches
        for segment in segments[:first]:
            if not self.context.disk.is_complete(segment.path):
                # A crash may lose the mark: the recovery point can be the first offset of the next segment.
                logger.error("%s has no end mark: the crash lost it, or the file was cut off", segment.path)
                self.context.disk.mark_complete(segment.path)
        end_offset = self.log_start_offset
        if segments:
            base_offset = segments[first].base_offset
            for offset in producer_snapshots.offsets(self.context, self.directory):
                if offset > base_offset:  # it may reflect batches that are lost
                    producer_snapshots.delete(self.context, self.directory, offset)
            self.producers = producer_snapshots.load(
                self.context, self.directory, segments[:first], self.log_start_offset, base_offset
            )
            end_offset = base_offset
        for index in range(first, len(segments)):
            segment = segments[index]
            if index > first and self._is_torn_before(segment, end_offset):
                self._drop(segments[index:])
                del segments[index:]
                break
            if index > first:
                producer_snapshots.store(
                    self.context, self.directory, self.producers, segment.base_offset, sync=False
                )
            end_offset, intact = self.check_segment(segment, max(end_offset, segment.base_offset))
            if not intact:
                self._drop(segments[index + 1 :])
                del segments[index + 1 :]
                break
        self.epochs.truncate_from_end(end_offset)
        self.producers.end_offset = end_offset
        if segments and end_offset > segments[0].base_offset:
            producer_snapshots.store(self.context, self.directory, self.producers, end_offset, sync=False)
        return end_offset

    def _is_torn_before(self, segment: Segment, end_offset: int) -> bool:
        """Whether the previous segment has lost whole batches at its end: after a power loss, later writes
        may survive without earlier ones. Only compaction leaves legitimate gaps."""
        if self.settings.compact or segment.base_offset <= end_offset:
            return False
        logger.warning(
            "%s begins at offset %d, but the segment before ends at %d",
            segment.path,
            segment.base_offset,
            end_offset,
        )
        return True

    def check_segment(self, segment: Segment, next_offset: int) -> tuple[int, bool]:
        """Read a whole segment and rebuild its indexes. Returns its end offset, and whether the whole file
        was valid."""
        offset_index, time_index = OffsetIndex(segment.base_offset), TimeIndex(segment.base_offset)
        segment.forget_transactions()
        since, valid_bytes = 0, 0
        largest, largest_offset = NO_TIMESTAMP, segment.base_offset
        file_bytes = self.context.disk.size(segment.path)
        segment.size = file_bytes
        try:
            for position, header, batch in batches(segment):
                if header.base_offset < next_offset or header.last_offset_delta < 0:
                    raise CorruptLog(
                        segment.path, position, f"offset {header.base_offset}, not {next_offset} or more"
                    )
                if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
                    raise CorruptLog(
                        segment.path, position, f"offset {header.last_offset} is too far from the first"
                    )
                if header.max_timestamp > largest:
                    largest, largest_offset = header.max_timestamp, header.last_offset
                if since > self.settings.index_interval_bytes:
                    offset_index.append(header.last_offset, position)
                    time_index.append(largest, largest_offset)
                    since = 0
                since += header.size
                valid_bytes = position + header.size
                next_offset = header.next_offset
                if header.partition_leader_epoch > self.epochs.latest_epoch:
                    self.epochs.assign(header.partition_leader_epoch, header.base_offset)
                aborted = producer_snapshots.replay(self.producers, segment, position, header, batch)
                if aborted is not None:
                    segment.add_transaction(aborted)
        except (CorruptLog, KafkaError) as error:
            logger.warning("%s; dropping all records from there on", error)
        time_index.append(largest, largest_offset)
        if valid_bytes < file_bytes:
            logger.warning("Truncating %s from %d to %d bytes", segment.path, file_bytes, valid_bytes)
            segment.resize(valid_bytes)
        segment.size = valid_bytes
        self.context.disk.mark_complete(segment.path)
        segment.replace_indexes(offset_index, time_index)
        return next_offset, valid_bytes == file_bytes

    def _drop(self, segments: list[Segment]) -> None:
        for segment in segments:
            logger.warning("Deleting %s: the log ends before it", segment.path)
            segment.delete_files()


def batches(
    segment: Segment, position: int = 0, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and bytes of every batch from a batch boundary on. `CorruptLog` at the first
    torn or damaged one."""
    end = segment.size
    buffer, start = memoryview(b""), 0
    while position < end:
        at = position - start
        if at + BATCH_OVERHEAD > len(buffer):
            buffer, start, at = memoryview(segment.pread(chunk_bytes, position)), position, 0
            if len(buffer) < BATCH_OVERHEAD:
                raise CorruptLog(segment.path, position, f"{len(buffer)} bytes of a batch header")
        _, length, old_crc, magic = _placement(buffer, at)
        size = length + 12
        if size > end - position:
            raise CorruptLog(segment.path, position, f"a batch of {size} bytes, {end - position} are left")
        if at + size > len(buffer):
            buffer, start, at = memoryview(segment.pread(max(chunk_bytes, size), position)), position, 0
        if magic < MAGIC and length >= LEGACY_OVERHEAD - 12:
            _refuse_legacy(segment, position, bytes(buffer[at : at + size]), old_crc & 0xFFFFFFFF)
        if length < BATCH_LENGTH_MIN or at + size > len(buffer):
            raise CorruptLog(segment.path, position, f"a batch of {size} bytes")
        batch = buffer[at : at + size]
        try:
            header = validate(batch)
        except KafkaError as error:
            raise CorruptLog(segment.path, position, error.message) from None
        yield position, header, batch
        position += size


def _refuse_legacy(segment: Segment, position: int, message: bytes, crc: int) -> None:
    """Raise StorageError for records of Kafka before 0.11: they are valid data and must not be truncated."""
    if zlib.crc32(message[MAGIC_AT:]) == crc:
        raise StorageError(
            f"{segment.path} holds records of message format v{message[MAGIC_AT]} at byte {position}; "
            "format v2 (Kafka 0.11 and later) is needed: let Apache Kafka rewrite or expire them first"
        )

"""Copying of a log into a future log: whole batches, unchanged, with transactions, leader epochs and
producers.

In: a log that may grow meanwhile, and its copy so far. Out: the copy, some bytes longer. No other code uses
the copy, so this may run in a thread.
Does not know: when the copy replaces the log, rate limits.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import headers
from barnabas.replication.divergence import truncation_offset
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import INT64_MAX


def shared_end(log: Log, copy: Log) -> int:
    """The offset up to which log and copy agree. The log may have been truncated and may have grown again
    with other records; the leader epochs show where. Call it on the thread that appends to the log, while no
    thread copies."""
    end = min(copy.end_offset, log.end_offset)
    while True:
        epoch, epoch_end = log.epochs.end_offset_for(copy.epochs.epoch_for(end - 1), log.end_offset)
        if epoch_end < 0:  # the copy's epoch is newer than all epochs of the log
            epoch, epoch_end = log.epochs.latest_epoch, log.end_offset
        cut = truncation_offset(copy.epochs, end, epoch, epoch_end)
        if cut >= end:
            return end
        end = cut


def copy_some(log: Log, copy: Log, bytes_max: int, now_ms: int, cut_at: int = INT64_MAX) -> int:
    """Copy at most `bytes_max` bytes, or one larger batch. Returns the number of bytes, 0 when there is
    nothing to copy now. The copy is first truncated to `cut_at`."""
    if log.truncation is not None:
        return 0
    copy.truncate_to(min(cut_at, log.end_offset))
    if copy.end_offset < log.log_start_offset:  # the next records were deleted: restart at the log's start
        copy.truncate_fully_and_start_at(log.log_start_offset)
    offset = copy.end_offset
    if offset >= log.written_offset:
        return 0
    try:
        data = log.read_cold(offset, bytes_max).read()
    except KafkaError as error:
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return copy_some(log, copy, bytes_max, now_ms)  # retention deleted the segment meanwhile
        if log.truncation is not None:
            return 0
        raise
    except OSError as error:
        raise log.context.failure("read", log.directory, error) from error
    view = memoryview(bytearray(data))
    copied = 0
    for position, header in headers(view):
        if header.base_offset < copy.end_offset:
            continue
        batch = view[position : position + header.size]
        copy.stage(batch, header, now_ms)
        aborted = producer_snapshots.replay(copy.producers, copy.active, 0, header, batch)
        if aborted is not None:
            copy.add_aborted(aborted)
        copied += header.size
    copy.write_staged()
    return copied


def complete(log: Log, copy: Log) -> None:
    """Finish a copy that has every batch: copy leader epochs, log start offset, producers and settings."""
    for epoch, start_offset in log.epochs.entries:
        if epoch > copy.epochs.latest_epoch:
            copy.assign_epoch(epoch, start_offset)
    copy.advance_log_start(log.log_start_offset)
    copy.producers = log.producers  # including those whose batches were deleted from the log
    copy.configure(log.settings)

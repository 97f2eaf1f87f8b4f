"""Copying a log into a future one: whole batches as they are, with what belongs to them.

In: a log that may be written to meanwhile, its copy so far. Out: the copy, some bytes longer; transactions,
leader epochs and producers with it. Nobody else uses the copy, so all of this may run in a thread.
Does not know: when the copy takes the log's place, how fast it may go.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import headers
from barnabas.replication.divergence import truncation_offset
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import INT64_MAX


def shared_end(log: Log, copy: Log) -> int:
    """Up to where the copy has what the log has. The log may have been cut since, and may have grown again
    with something else (leader epochs tell); after a restart nobody remembers. For the thread that appends to
    the log, while no other is at the copy."""
    end = min(copy.end_offset, log.end_offset)
    while True:
        epoch, epoch_end = log.epochs.end_offset_for(copy.epochs.epoch_for(end - 1), log.end_offset)
        if epoch_end < 0:  # the log knows no epoch as new as the copy's
            epoch, epoch_end = log.epochs.latest_epoch, log.end_offset
        cut = truncation_offset(copy.epochs, end, epoch, epoch_end)
        if cut >= end:
            return end
        end = cut


def copy_some(log: Log, copy: Log, bytes_max: int, now_ms: int, cut_at: int = INT64_MAX) -> int:
    """Copy at most `bytes_max` bytes, or one batch that is larger; how many. 0 when there is nothing more
    now. What the copy has from `cut_at` on goes first."""
    if log.truncation is not None:
        return 0
    copy.truncate_to(min(cut_at, log.end_offset))
    if copy.end_offset < log.log_start_offset:  # what comes next is gone: begin where the log does now
        copy.truncate_fully_and_start_at(log.log_start_offset)
    offset = copy.end_offset
    if offset >= log.written_offset:
        return 0
    try:
        data = log.read_cold(offset, bytes_max).read()
    except KafkaError as error:
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return copy_some(log, copy, bytes_max, now_ms)  # retention was faster
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
    """The copy has every batch: give it the rest of what the log knows."""
    for epoch, start_offset in log.epochs.entries:
        if epoch > copy.epochs.latest_epoch:
            copy.assign_epoch(epoch, start_offset)
    copy.advance_log_start(log.log_start_offset)
    copy.producers = log.producers  # also those whose last batches are gone from the log
    copy.configure(log.settings)

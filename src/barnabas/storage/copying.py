"""Copying a log into a future one: whole batches as they are, with what belongs to them.

In: a log that may be written to meanwhile, its copy so far. Out: the copy, some bytes longer; transactions,
leader epochs and producers with it. Nobody else uses the copy, so all of this may run in a thread.
Does not know: when the copy takes the log's place, how fast it may go.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import headers
from barnabas.storage import producer_snapshots
from barnabas.storage.log import Log


def copy_some(log: Log, copy: Log, bytes_max: int, now_ms: int) -> int:
    """Copy at most `bytes_max` bytes, or one batch that is larger; how many. 0 when there is nothing more
    now."""
    if copy.end_offset > log.end_offset:
        copy.truncate_to(log.end_offset)  # the log itself was cut
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

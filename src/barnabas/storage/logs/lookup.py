"""Lookup of offsets by timestamp: the first record at or after a time, and the record with the largest time.

In: a log and a timestamp. Out: timestamp, offset and leader epoch of one record. The time index and the
offset index lead to a batch; only that batch is decompressed. May run in a thread while the log grows.
Does not know: earliest and latest offsets (attributes of the log), isolation levels, remote storage.
"""

import logging
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol import KafkaError
from barnabas.records.batch import BatchHeader
from barnabas.records.record import iter_records
from barnabas.storage.logs.reading import retry_on_change
from barnabas.storage.logs.retention import largest_timestamp
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log


logger = logging.getLogger(__name__)


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int  # -1: unknown


def offset_for_timestamp(log: "Log", timestamp: int) -> TimestampOffset | None:
    """The first record at or after the log's start whose timestamp is `timestamp` or later."""
    return retry_on_change(log, lambda: _offset_for_timestamp(log, timestamp))


def _offset_for_timestamp(log: "Log", timestamp: int) -> TimestampOffset | None:
    for segment in log.segments:
        if largest_timestamp(segment) >= timestamp:
            found = _search(segment, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return None


def max_timestamp_offset(log: "Log") -> TimestampOffset | None:
    """The first record that has the largest timestamp of the log."""
    return retry_on_change(log, lambda: _max_timestamp_offset(log))


def _max_timestamp_offset(log: "Log") -> TimestampOffset | None:
    segment = max(log.segments, key=lambda segment: segment.largest_timestamp()[0])
    timestamp, offset = segment.largest_timestamp()
    if timestamp < 0:
        return None
    for position, header in segment.headers(segment.offset_index().position_before(offset)):
        if header.max_timestamp == timestamp:
            return _first_record(segment, position, header, timestamp, 0)
    return None


def _search(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    offset = max(segment.time_index().offset_before(timestamp), start_offset)
    for position, header in segment.headers(segment.offset_index().position_before(offset)):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            found = _first_record(segment, position, header, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    batch = segment.pread(header.size, position)
    epoch = header.partition_leader_epoch
    try:
        for record in iter_records(batch):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp, record.offset, epoch)
    except KafkaError as error:
        # Its records cannot be read: return the batch's first offset. Consumers will report the error.
        logger.warning(
            "Cannot read the batch at offset %d of %s: %s", header.base_offset, segment.path, error.message
        )
        return TimestampOffset(header.max_timestamp, max(header.base_offset, start_offset), epoch)
    return None

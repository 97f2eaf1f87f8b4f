"""Fast path for Produce: reads requests and writes responses without message objects.

In: the body of a request of version 3 to 13. Out: its batches as views, and the response if all were
appended. For an unusual request (a long name, tagged fields, no records, trailing bytes) the result is None,
and the caller uses the codec, which also reports errors. The codec defines the format; a test compares both
for every version.
Does not know: partitions, what is in the batches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

from barnabas.protocol.wire import varint

VERSIONS = range(3, 14)
LOG_START_SINCE = 5
RECORD_ERRORS_SINCE = 8
FLEXIBLE_SINCE = 9
TOPIC_IDS_SINCE = 13
UUID_BYTES = 16
ACKS = (-1, 0, 1)
SHORT_MAX = 127  # the largest compact length that takes one byte
BATCH_BYTES_MIN = 61  # the header of a batch
MALFORMED = IndexError, struct.error, UnicodeDecodeError, ValueError
BATCHES_MAX = 64  # of a request; a broker appends larger requests in parts
FRONTS_MAX = 4096  # remembered by a layout; the oldest is dropped
FRONT_BYTES_MAX = 400
FRONT_AT = 8  # after api key, version and correlation id
# Distances from the end of the client id, without a transactional id.
NAME_AT, NAME_END, UUID_END = 9, 10, 26
PLAIN_NAME_AT, PLAIN_NAME_END = 12, 18

Batch: TypeAlias = tuple[int, memoryview]
"""A partition's index, and its records."""
TopicBatches: TypeAlias = tuple[str | bytes, list[Batch]]
"""A topic by its name or id, and its batches."""
Batches: TypeAlias = tuple[str | None, int, int, list[TopicBatches]]
"""Transactional id, acks, timeout in ms, and the batches of each topic (at least one)."""
FoundBatch: TypeAlias = tuple["ProduceFront", int, memoryview]
"""The front of a request, the partition's index and the records. For a front with several batches: the
position of the first one, and the frame (see `ProduceLayout.read_behind`)."""
Placed: TypeAlias = tuple[int, int, int]
"""The place of an appended batch: base offset, append time, log start offset."""

_compact_front = struct.Struct(">hiB").unpack_from
_compact_partition = struct.Struct(">iB").unpack_from
_plain_front = struct.Struct(">hii").unpack_from
_plain_partition = struct.Struct(">ii").unpack_from
_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from
_frame = struct.Struct(">ii").pack


class ProduceFront:
    """The first bytes of a request for one topic, from its client id to the count of partitions, and the
    constant parts of the response. Producers repeat the same front in every request."""

    __slots__ = (
        "acks", "count", "end", "pack", "size", "start", "timeout_ms", "topic", "transactional_id",
    )  # fmt: skip

    def __init__(
        self,
        layout: ProduceLayout,
        topic: str | bytes,
        acks: int,
        timeout_ms: int,
        transactional_id: str | None,
        count: int,
    ) -> None:
        self.count = count  # of partitions
        self.topic = topic  # name or id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.transactional_id = transactional_id
        self.start = layout.start(1) + layout.topic_start(topic, 1)
        self.end = layout.partition_end + layout.topic_end + layout.end
        whole = struct.Struct(f">ii{len(self.start)}s{layout.placed}{len(self.end)}s")
        # The framed response is pack(size, correlation id, start, index, base offset, append time, log start,
        # end). The caller uses `pack` directly: a function around it would cost half as much again.
        self.pack: Callable[..., bytes] = whole.pack
        if not layout.has_log_start:
            self.pack = lambda *values: whole.pack(*values[:6], values[7])
        self.size = whole.size - 4


class ProduceLayout:
    """One version of the request, and of its response."""

    __slots__ = (
        "_fronts", "_one_topic", "_pack_partition", "_topic_starts", "end", "find", "has_log_start",
        "has_topic_ids", "is_compact", "partition_end", "placed", "topic_end",
    )  # fmt: skip

    def __init__(self, version: int) -> None:
        self.is_compact = version >= FLEXIBLE_SINCE
        self.has_topic_ids = version >= TOPIC_IDS_SINCE
        self.has_log_start = version >= LOG_START_SINCE
        no_tags = b"\0" if self.is_compact else b""
        # No record errors, no error message.
        no_errors = b"\1\0" if self.is_compact else b"\0\0\0\0\xff\xff"
        self.placed = "i2xqqq" if self.has_log_start else "i2xqq"  # error code 0 behind the index
        self.partition_end = (no_errors if version >= RECORD_ERRORS_SINCE else b"") + no_tags
        self.topic_end = no_tags
        self.end = b"\0\0\0\0" + no_tags  # throttle time
        self._pack_partition = struct.Struct(f">{self.placed}{len(self.partition_end)}s").pack
        self._fronts: dict[bytes, ProduceFront] = {}
        self._one_topic = self.start(1)
        self._topic_starts: dict[tuple[str | bytes, int], bytes] = {}  # of responses
        # Finds the batch of a request with a remembered front and one batch; None for all others.
        self.find = self._find_compact if self.is_compact else self._find_plain

    # -- requests --------------------------------------------------------------------------------

    def read(self, frame: memoryview, position: int) -> Batches | None:
        """Read the batches of a request, beginning after its client id. None if the codec has to read it."""
        try:
            if self.is_compact:
                return self._read_compact(frame, position)
            return self._read_plain(frame, position)
        except MALFORMED:
            return None

    def _find_compact(self, frame: memoryview, position: int) -> FoundBatch | None:
        try:
            size = frame[position + 1]  # of the transactional id plus 1, behind the header's tags
            if size:
                position += size - 1
            end = position + (UUID_END if self.has_topic_ids else NAME_END + frame[position + NAME_AT])
            front = self._fronts.get(bytes(frame[FRONT_AT:end]))
            if front is None:
                return None
            if front.count > 1:
                return front, end, frame
            index, size = _compact_partition(frame, end)
            position = end + 5
            if size > SHORT_MAX:
                byte = frame[position]
                size += (byte << 7) - 128
                position += 1
                if byte > SHORT_MAX:
                    byte = frame[position]
                    size += (byte << 14) - (128 << 7)
                    position += 1
                if not 0 < byte <= SHORT_MAX:
                    return None
            end = position + size - 1
            # After the records: no tagged fields of the partition, the topic, the request.
            if end + 3 != len(frame) or frame[end] or frame[end + 1] or frame[end + 2]:
                return None
            if size <= BATCH_BYTES_MIN:
                return None
            return front, index, frame[position:end]
        except MALFORMED:
            return None

    def _find_plain(self, frame: memoryview, position: int) -> FoundBatch | None:
        try:
            (size,) = _int16(frame, position)
            if size > 0:
                position += size
            end = position + PLAIN_NAME_END + _int16(frame, position + PLAIN_NAME_AT)[0]
            front = self._fronts.get(bytes(frame[FRONT_AT:end]))
            if front is None:
                return None
            if front.count > 1:
                return front, end, frame
            index, size = _plain_partition(frame, end)
            position = end + 8
            if size < BATCH_BYTES_MIN or position + size != len(frame):
                return None
            return front, index, frame[position:]
        except MALFORMED:
            return None

    def remember(self, frame: memoryview, batches: Batches) -> None:
        """Remember the front of a request that `read` has read, for `find`. Only for requests with one
        topic."""
        transactional_id, acks, timeout_ms, topics = batches
        topic, found = topics[0]
        if len(topics) > 1 or acks not in ACKS:
            return
        if self.is_compact:  # index, size and no tagged fields around each batch; none of topic and request
            behind = 2 + sum(4 + len(varint(len(each) + 1)) + len(each) + 1 for _, each in found)
        else:
            behind = sum(4 + 4 + len(each) for _, each in found)
        raw = bytes(frame[FRONT_AT : len(frame) - behind])
        if len(raw) > FRONT_BYTES_MAX:
            return
        if len(self._fronts) >= FRONTS_MAX:
            del self._fronts[next(iter(self._fronts))]
        self._fronts[raw] = ProduceFront(self, topic, acks, timeout_ms, transactional_id, len(found))

    def read_behind(self, front: ProduceFront, frame: memoryview, position: int) -> Batches | None:
        """Read the batches of a request whose front has several, beginning with the first one."""
        try:
            if self.is_compact:
                batches, position = _compact_batches(frame, position, front.count)
                if frame[position] or frame[position + 1]:  # tagged fields of the topic, of the request
                    return None
                position += 2
            else:
                batches, position = _plain_batches(frame, position, front.count)
        except MALFORMED:
            return None
        if position != len(frame):
            return None
        return front.transactional_id, front.acks, front.timeout_ms, [(front.topic, batches)]

    def _read_compact(self, frame: memoryview, position: int) -> Batches | None:
        tags, size = frame[position], frame[position + 1]  # of the header, of the transactional id plus 1
        position += 2
        transactional_id = None
        if tags or size:
            if tags or size > SHORT_MAX:
                return None
            end = position + size - 1
            transactional_id = str(frame[position:end], "utf-8")
            position = end
        acks, timeout_ms, topics = _compact_front(frame, position)
        position += 7
        if not 1 < topics <= SHORT_MAX:
            return None
        found: list[TopicBatches] = []
        room = BATCHES_MAX
        while topics > 1:
            topics -= 1
            topic: str | bytes
            if self.has_topic_ids:
                end = position + UUID_BYTES
                topic = bytes(frame[position:end])
            else:
                size = frame[position]
                if not 0 < size <= SHORT_MAX:
                    return None
                end = position + size
                topic = str(frame[position + 1 : end], "utf-8")
            partitions = frame[end]
            position = end + 1
            room -= partitions - 1
            if partitions < 2 or room < 0:
                return None
            batches, position = _compact_batches(frame, position, partitions - 1)
            if frame[position]:
                return None
            position += 1
            found.append((topic, batches))
        if frame[position] or position + 1 != len(frame):
            return None
        return transactional_id, acks, timeout_ms, found

    def _read_plain(self, frame: memoryview, position: int) -> Batches | None:
        (size,) = _int16(frame, position)
        position += 2
        transactional_id = None
        if size != -1:
            if size < 0:
                return None
            end = position + size
            transactional_id = str(frame[position:end], "utf-8")
            position = end
        acks, timeout_ms, topics = _plain_front(frame, position)
        position += 10
        if topics < 1:
            return None
        found: list[TopicBatches] = []
        room = BATCHES_MAX
        while topics:
            topics -= 1
            (size,) = _int16(frame, position)
            position += 2
            if not 0 <= size < SHORT_MAX:
                return None
            end = position + size
            topic = str(frame[position:end], "utf-8")
            (partitions,) = _int32(frame, end)
            position = end + 4
            room -= partitions
            if partitions < 1 or room < 0:
                return None
            batches, position = _plain_batches(frame, position, partitions)
            found.append((topic, batches))
        if position != len(frame):
            return None
        return transactional_id, acks, timeout_ms, found

    # -- responses -------------------------------------------------------------------------------

    def response(self, correlation_id: int, topics: list[TopicBatches], placed: list[Placed]) -> bytes:
        """The framed response to a request whose batches were appended at `placed`, in the same order."""
        pack, end = self._pack_partition, self.partition_end
        parts = [self._one_topic if len(topics) == 1 else self.start(len(topics))]
        where = iter(placed)
        for topic, batches in topics:
            start = self._topic_starts.get((topic, len(batches)))
            parts.append(start or self._remember_start(topic, len(batches)))
            if self.has_log_start:
                for (index, _), (base_offset, append_time_ms, log_start) in zip(batches, where, strict=False):
                    parts.append(pack(index, base_offset, append_time_ms, log_start, end))
            else:
                for (index, _), (base_offset, append_time_ms, _) in zip(batches, where, strict=False):
                    parts.append(pack(index, base_offset, append_time_ms, end))
            parts.append(self.topic_end)
        parts.append(self.end)
        body = b"".join(parts)
        return _frame(len(body) + 4, correlation_id) + body

    def _remember_start(self, topic: str | bytes, partitions: int) -> bytes:
        if len(self._topic_starts) >= FRONTS_MAX:
            self._topic_starts.clear()
        start = self._topic_starts[topic, partitions] = self.topic_start(topic, partitions)
        return start

    def start(self, topics: int) -> bytes:
        """The bytes before the first topic."""
        return (b"\0" if self.is_compact else b"") + self.count(topics)

    def topic_start(self, topic: str | bytes, partitions: int) -> bytes:
        if isinstance(topic, bytes):
            return topic + self.count(partitions)
        raw = topic.encode()
        length = varint(len(raw) + 1) if self.is_compact else struct.pack(">h", len(raw))
        return length + raw + self.count(partitions)

    def count(self, number: int) -> bytes:
        return varint(number + 1) if self.is_compact else struct.pack(">i", number)


def _compact_batches(frame: memoryview, position: int, count: int) -> tuple[list[Batch], int]:
    """The batches of a topic, and their end. ValueError if one of them is unusual."""
    batches: list[Batch] = []
    while count:
        count -= 1
        index, size = _compact_partition(frame, position)
        position += 5
        if size > SHORT_MAX:
            byte = frame[position]
            size += (byte << 7) - 128
            position += 1
            if byte > SHORT_MAX:
                byte = frame[position]
                size += (byte << 14) - (128 << 7)
                position += 1
            if not 0 < byte <= SHORT_MAX:
                raise ValueError
        if size <= BATCH_BYTES_MIN:
            raise ValueError
        end = position + size - 1
        batches.append((index, frame[position:end]))
        if frame[end]:  # tagged fields
            raise ValueError
        position = end + 1
    return batches, position


def _plain_batches(frame: memoryview, position: int, count: int) -> tuple[list[Batch], int]:
    batches: list[Batch] = []
    while count:
        count -= 1
        index, size = _plain_partition(frame, position)
        if size < BATCH_BYTES_MIN:
            raise ValueError
        position += 8
        end = position + size
        batches.append((index, frame[position:end]))
        position = end
    return batches, position

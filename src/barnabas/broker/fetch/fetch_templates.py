"""Templates of a fetch of one partition and of its response: encoded once, then filled with numbers.

In: a request or a response as a message. Out: its bytes with other numbers. A follower that keeps up with a
busy partition names it in every fetch; only session epoch and fetch offset differ. The responses differ in
offsets and records. The positions of the numbers are found by encoding markers, so this module does not know
the layout. Does not know: sessions, partitions, connections.
"""

from __future__ import annotations

import struct
from itertools import count
from typing import Any

from barnabas.protocol.codec import codec
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.wire import varint

EPOCH_MARK = 0x11223344
OFFSET_MARK = 0x1122334455667788
STATE_MARKS = 0x2233445566778899, 0x33445566778899AA, 0x445566778899AABB
RECORDS_MARK = b"?"

_state = struct.Struct(">qqq").pack


class FetchTemplate:
    """A request for one partition, with the bytes in front of it, except session epoch and fetch offset."""

    __slots__ = ("_end", "_middle", "_pack", "_size", "_start", "_unpack")

    def __init__(self, request: FetchRequest, version: int, head: bytes = b"") -> None:
        asked = request.topics[0].partitions[0]
        kept = request.session_epoch, asked.fetch_offset
        body, mark = b"", b""
        for number in count(EPOCH_MARK):
            request.session_epoch, asked.fetch_offset = number, OFFSET_MARK
            body, mark = head + request.encode(version), struct.pack(">i", number)
            if body.count(mark) == 1:  # a session's id may look like it
                break
        request.session_epoch, asked.fetch_offset = kept
        self._start, _, rest = body.partition(mark)
        self._middle, _, self._end = rest.partition(struct.pack(">q", OFFSET_MARK))
        whole = struct.Struct(f">{len(self._start)}si{len(self._middle)}sq{len(self._end)}s")
        self._pack, self._unpack = whole.pack, whole.unpack
        self._size = len(body)

    def fill(self, session_epoch: int, fetch_offset: int) -> bytes:
        return self._pack(self._start, session_epoch, self._middle, fetch_offset, self._end)

    def match(self, body: memoryview) -> tuple[int, int] | None:
        """The session epoch and fetch offset of a request that is otherwise the same; None if it is not."""
        if len(body) != self._size:
            return None
        start, session_epoch, middle, fetch_offset, end = self._unpack(body)
        if start != self._start or middle != self._middle or end != self._end:
            return None
        return session_epoch, fetch_offset


class ResponseTemplate:
    """A response with records of one partition, except its offsets and the records."""

    __slots__ = ("_end", "_middle", "_start")

    def __init__(self, response: FetchResponse, version: int) -> None:
        data = response.responses[0].partitions[0]
        data.high_watermark, data.last_stable_offset, data.log_start_offset = STATE_MARKS
        data.records = RECORDS_MARK
        parts: list[Any] = []
        codec(FetchResponse, version).encode(response, parts.append)
        at = next(index for index, part in enumerate(parts) if part is RECORDS_MARK)
        before = b"".join(parts[:at])[:-1]  # without the length of the records
        self._start, _, self._middle = before.partition(_state(*STATE_MARKS))
        self._end = b"".join(parts[at + 1 :])

    def fill(
        self, high_watermark: int, last_stable_offset: int, log_start_offset: int, records: bytes
    ) -> bytes:
        state = _state(high_watermark, last_stable_offset, log_start_offset)
        return b"".join(
            (self._start, state, self._middle, varint(len(records) + 1), records, self._end),
        )

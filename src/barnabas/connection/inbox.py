"""The inbox: splits the incoming bytes of one connection into frames.

In: `buffer` gives memory to read into, `received` is told the number of bytes. Out: runs of whole frames as
views. Frames that arrive in one read are not copied. A frame larger than a read gets its own buffer and is
received into it directly.
Does not know: what a frame means, sockets, time.
"""

from __future__ import annotations

import struct

from barnabas.connection.arena import READ_BYTES_MAX, Arena, LargeBuffer
from barnabas.protocol import ProtocolError

SIZE_BYTES = 4
FRAME_BYTES_MIN = 8  # api key, version and correlation id
TLS_HELLO = 0x160301  # the first bytes of a TLS handshake, taken for a size
_size = struct.Struct(">i").unpack_from


class Inbox:
    __slots__ = (
        "_carry",
        "_large",
        "_start",
        "arena",
        "frame_bytes_max",
        "frame_bytes_min",
        "waits_for_memory",
    )

    def __init__(self, arena: Arena, frame_bytes_max: int) -> None:
        self.arena = arena
        self.frame_bytes_max = frame_bytes_max
        self.frame_bytes_min = FRAME_BYTES_MIN
        self._carry = b""  # the start of an incomplete frame
        self._large: LargeBuffer | None = None
        self._start = 0
        self.waits_for_memory = False  # a large frame waits for memory that other connections use

    def buffer(self) -> memoryview:
        """Memory for the next read. If the arena was used up, the tick has ended before."""
        large = self._large
        if large is not None:
            return large.view[large.filled : large.frame_bytes]
        arena = self.arena
        start = self._start = arena.position
        carry = self._carry
        if carry:
            end = start + len(carry)
            arena.view[start:end] = carry
            return arena.view[end : end + READ_BYTES_MAX]
        return arena.view[start : start + READ_BYTES_MAX]

    def received(self, count: int) -> memoryview | None:
        """Return the bytes that can be parsed now: a run that starts with a frame, or None while a large
        frame is incomplete.
        """
        large = self._large
        if large is not None:
            large.filled += count
            return large.view[: large.filled] if large.filled == large.frame_bytes else None
        start = self._start
        end = start + len(self._carry) + count
        self._carry = b""
        return self.arena.view[start:end]

    def pop_waiting(self) -> memoryview | None:
        """Return the run that arrived while the connection was busy."""
        large = self._large
        if large is not None:
            return large.view[: large.filled] if large.filled == large.frame_bytes else None
        if not self._carry:
            return None
        self.buffer()
        return self.received(0)

    @property
    def holds_large_frame(self) -> bool:
        """Whether a frame that has its own buffer is being received."""
        return self._large is not None

    @property
    def is_full(self) -> bool:
        """Whether reading should pause until the connection has handled what is here."""
        large = self._large
        return len(self._carry) >= READ_BYTES_MAX or (large is not None and large.filled == large.frame_bytes)

    def frame_end(self, run: memoryview, position: int, end: int) -> int:
        """The end of the frame at `position`, or 0 if it is incomplete. ProtocolError for a size out of
        bounds."""
        if end - position < SIZE_BYTES:
            return 0
        size: int = _size(run, position)[0]
        if not self.frame_bytes_min <= size <= self.frame_bytes_max:
            allowed = f"{self.frame_bytes_min} to {self.frame_bytes_max}"
            if size >> 8 == TLS_HELLO:
                raise ProtocolError(
                    "size",
                    "it looks like TLS, and this listener has none: set security.protocol=PLAINTEXT (or "
                    "SASL_PLAINTEXT) in the client, or use the port of a TLS listener",
                )
            raise ProtocolError("size", f"a frame of {size} bytes, allowed are {allowed}")
        stop = position + SIZE_BYTES + size
        return stop if stop <= end else 0

    def consume(self, run: memoryview, rest: int, *, referenced: bool) -> None:
        """End a run that was parsed up to `rest`. Keeps the bytes after it. Frees the memory unless
        referenced."""
        end = len(run)
        large = self._large
        if large is not None:
            if rest:
                self._large = None
                self.arena.return_buffer(large, referenced=referenced)
            return
        if rest < end:
            self._keep(run, rest, end)
        if referenced:
            self.arena.position = self._start + end + (-end & 7)

    def release_buffers(self) -> None:
        """Return all borrowed buffers, because the connection is closed."""
        if self._large is not None:
            self.arena.return_buffer(self._large, referenced=False)
            self._large = None
        self._carry = b""

    def _keep(self, run: memoryview, rest: int, end: int) -> None:
        if end - rest >= SIZE_BYTES:
            frame_bytes = SIZE_BYTES + _size(run, rest)[0]
            is_large = READ_BYTES_MAX < frame_bytes <= SIZE_BYTES + self.frame_bytes_max
            self.waits_for_memory = is_large and self.arena.is_exhausted
            if is_large and end - rest <= frame_bytes and not self.waits_for_memory:
                large = self._large = self.arena.borrow(frame_bytes)
                large.view[: end - rest] = run[rest:end]
                large.filled = end - rest
                return
        self._carry = bytes(run[rest:end])

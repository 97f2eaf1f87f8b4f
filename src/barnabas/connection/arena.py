"""The arena: memory for incoming bytes, shared by all connections of one loop.

Out: views of one block to read into, and larger buffers for frames that do not fit. Batches are appended as
views of this memory, so the bytes of a tick stay unchanged until `release`. The tick calls it at its end,
when all staged batches are written. So an idle connection needs no buffer, and a frame is copied only if it
arrives in two reads.
Does not know: sockets, frames, logs.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable

READ_BYTES_MAX = 128 * 1024
ARENA_BYTES = 2 * 1024 * 1024
FREE_BYTES_MAX = 16 * 1024 * 1024
NO_LIMIT = 1 << 62


class LargeBuffer:
    """A buffer for one frame that is larger than a read. Buffers are reused, since new pages cost more than
    the copy.

    It is anonymous memory of the kernel: if a peer announces 100 MB and sends little, little memory is used.
    """

    __slots__ = ("capacity", "filled", "frame_bytes", "view")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.view = memoryview(mmap.mmap(-1, capacity))
        self.frame_bytes = 0
        self.filled = 0


class Arena:
    __slots__ = (
        "_free", "_free_bytes", "_held", "_large_bytes_max", "_starving", "bytes_large", "is_lent", "limit",
        "on_starving", "position", "view",
    )  # fmt: skip

    def __init__(self, size: int = ARENA_BYTES, large_bytes_max: int = -1) -> None:
        self.view = memoryview(bytearray(size))
        self.position = 0  # invariant: staged batches may reference all bytes below it
        # True while a run is handled: until it is known which bytes are referenced, no read may overwrite
        # them.
        self.is_lent = False
        self.limit = size - 4 * READ_BYTES_MAX  # beyond it, the tick must end before the next read
        self.bytes_large = 0  # in borrowed buffers; limited by `queued.max.request.bytes`
        self._free: list[LargeBuffer] = []
        self._free_bytes = 0
        self._held: list[LargeBuffer] = []
        self._large_bytes_max = large_bytes_max if large_bytes_max >= 0 else NO_LIMIT
        self._starving: dict[Callable[[], None], None] = {}
        # Called with True when the first frame has to wait for memory, with False when there is some again.
        self.on_starving: Callable[[bool], None] | None = None

    @property
    def bytes_left(self) -> int:
        """How many bytes large frames may borrow beside those that are borrowed."""
        return max(self._large_bytes_max - self.bytes_large, 0)

    @property
    def is_exhausted(self) -> bool:
        """Whether a large frame has to wait until others are handled (`queued.max.request.bytes`)."""
        return self.bytes_large >= self._large_bytes_max

    def wait_for_room(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when a large buffer is returned."""
        if not self._starving and self.on_starving is not None:
            self.on_starving(True)
        self._starving[resume] = None

    def borrow(self, frame_bytes: int) -> LargeBuffer:
        """Borrow a buffer for a frame of `frame_bytes`. Capacities are powers of two, so that buffers can be
        reused."""
        capacity = 1 << (frame_bytes - 1).bit_length()
        for index, free in enumerate(self._free):
            if free.capacity == capacity:
                del self._free[index]
                self._free_bytes -= capacity
                break
        else:
            free = LargeBuffer(capacity)
        free.frame_bytes = frame_bytes
        free.filled = 0
        self.bytes_large += capacity
        return free

    def return_buffer(self, buffer: LargeBuffer, *, referenced: bool) -> None:
        """Return a buffer. If staged batches still reference it, it is kept until `release`."""
        self.bytes_large -= buffer.capacity
        if self._starving and not self.is_exhausted:
            starving, self._starving = self._starving, {}
            if self.on_starving is not None:
                self.on_starving(False)
            for resume in starving:
                resume()
        if referenced:
            self._held.append(buffer)
        elif self._free_bytes + buffer.capacity <= FREE_BYTES_MAX:
            self._free.append(buffer)
            self._free_bytes += buffer.capacity

    def release(self) -> None:
        """Reuse all memory: no batch references received bytes any more."""
        self.position = 0
        if self._held:
            held, self._held = self._held, []
            for buffer in held:
                self.bytes_large += buffer.capacity
                self.return_buffer(buffer, referenced=False)

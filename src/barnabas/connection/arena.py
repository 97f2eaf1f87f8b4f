"""The arena: memory that incoming bytes land in, shared by all connections of one loop.

In: requests for room to read into. Out: views of one block, and larger buffers for frames that exceed it.
Batches are appended as views of this memory, so what a tick received stays untouched until `release`, which
the end of the tick calls once everything staged has been written. Idle connections therefore cost no
buffer, and a frame is copied only when it straddles two reads.
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
    """Room for one frame that is larger than a read; reused, since fresh pages cost more than the copy.

    Anonymous memory of the kernel's: a peer that announces 100 MB and sends little costs little.
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
        "position", "view",
    )  # fmt: skip

    def __init__(self, size: int = ARENA_BYTES, large_bytes_max: int = -1) -> None:
        self.view = memoryview(bytearray(size))
        self.position = 0  # invariant: everything below it may be referenced by staged batches
        # A run is being handled: nothing may be copied in before it is known how much of it is referenced.
        self.is_lent = False
        self.limit = size - 4 * READ_BYTES_MAX  # past it, the tick must end before the next read
        self.bytes_large = 0  # in buffers lent out: what `queued.max.request.bytes` bounds
        self._free: list[LargeBuffer] = []
        self._free_bytes = 0
        self._held: list[LargeBuffer] = []
        self._large_bytes_max = large_bytes_max if large_bytes_max >= 0 else NO_LIMIT
        self._starving: dict[Callable[[], None], None] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether a large frame has to wait for others to be handled (`queued.max.request.bytes`)."""
        return self.bytes_large >= self._large_bytes_max

    def wait_for_room(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when a large buffer has been given back."""
        self._starving[resume] = None

    def borrow(self, frame_bytes: int) -> LargeBuffer:
        """A buffer for a frame of `frame_bytes`; capacities are powers of two so that they fit each other."""
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
        """Return a buffer; one that staged batches still refer to is kept aside until `release`."""
        self.bytes_large -= buffer.capacity
        if self._starving and not self.is_exhausted:
            starving, self._starving = self._starving, {}
            for resume in starving:
                resume()
        if referenced:
            self._held.append(buffer)
        elif self._free_bytes + buffer.capacity <= FREE_BYTES_MAX:
            self._free.append(buffer)
            self._free_bytes += buffer.capacity

    def release(self) -> None:
        """Nothing received before this moment is referenced any more."""
        self.position = 0
        if self._held:
            held, self._held = self._held, []
            for buffer in held:
                self.bytes_large += buffer.capacity
                self.return_buffer(buffer, referenced=False)

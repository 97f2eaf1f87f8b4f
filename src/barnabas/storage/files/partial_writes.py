"""Partial writes: finish a vectored write that the operating system did only in part.

In: buffers, a position, the number of bytes that are written already. Out: all bytes in the file, or
`OSError`. The caller makes the first call itself, which usually writes everything.
Does not know: what is in the buffers.
"""

from collections.abc import Sequence

from barnabas.runtime.disk import IOV_MAX, Disk


def finish_write(
    disk: Disk, descriptor: int, buffers: Sequence[memoryview], position: int, written: int
) -> None:
    """Write the rest of `buffers` at `position`; the first `written` bytes are in the file already."""
    pending = _skip_bytes(list(buffers), written)
    position += written
    while pending:
        count = disk.pwritev(descriptor, pending[:IOV_MAX], position)
        if count <= 0:
            raise OSError(f"nothing was written at byte {position}")
        position += count
        pending = _skip_bytes(pending, count)


def _skip_bytes(buffers: list[memoryview], count: int) -> list[memoryview]:
    """The buffers without their first `count` bytes."""
    done = 0
    while done < len(buffers) and count >= len(buffers[done]):
        count -= len(buffers[done])
        done += 1
    left = buffers[done:]
    if count:
        left[0] = memoryview(left[0])[count:]
    return left

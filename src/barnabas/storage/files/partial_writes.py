"""Writing many buffers one behind the other, however often the system wants to be asked.

In: buffers, a position, how much of them is written already. Out: all of it in the file, or `OSError`.
The common case, one call that takes everything, is the caller's own; this is the rest.
Does not know: what is in the buffers.
"""

from collections.abc import Sequence

from barnabas.runtime.disk import IOV_MAX, Disk


def finish_write(
    disk: Disk, descriptor: int, buffers: Sequence[memoryview], position: int, written: int
) -> None:
    """Write `buffers` at `position`, of which the first `written` bytes are there already."""
    pending = _skip_bytes(list(buffers), written)
    position += written
    while pending:
        count = disk.pwritev(descriptor, pending[:IOV_MAX], position)
        if count <= 0:
            raise OSError(f"nothing was written at byte {position}")
        position += count
        pending = _skip_bytes(pending, count)


def _skip_bytes(buffers: list[memoryview], count: int) -> list[memoryview]:
    """What is left of the buffers behind the first `count` bytes."""
    done = 0
    while done < len(buffers) and count >= len(buffers[done]):
        count -= len(buffers[done])
        done += 1
    left = buffers[done:]
    if count:
        left[0] = memoryview(left[0])[count:]
    return left

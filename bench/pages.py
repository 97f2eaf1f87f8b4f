"""Memory that the machine already has: a virtual machine gets its pages from the host on first touch.

A page the host must hand out costs several times the write itself, and would be most of what is measured. So
before a round the page cache is filled with as much as the round will write, and emptied again: the same
for both brokers. On a machine of its own this changes nothing.
"""

from __future__ import annotations

import os
import tempfile

CHUNK_BYTES = 1 << 20


def touch(size: int) -> None:
    """Writes `size` bytes to a file that is gone at once: nothing of it reaches the disk."""
    chunk = bytes(CHUNK_BYTES)
    with tempfile.TemporaryFile(prefix="touch-") as file:
        for _ in range(size // CHUNK_BYTES):
            os.write(file.fileno(), chunk)

"""Warms up memory: a virtual machine gets each page from its host when it first touches the page.

Such a page costs several times the write itself and would dominate the measurement. So before a round, the
page cache is filled with as much as the round will write, and emptied again, in the same way for both
brokers. On a physical machine this changes nothing.
"""

from __future__ import annotations

import os
import tempfile
import time

CHUNK_BYTES = 1 << 20
PASSES_MAX = 5
FASTER = 0.8  # if a pass takes at least this share of the previous one's time, the memory is warm


def touch(size: int) -> None:
    """Write `size` bytes to a file and delete it, until that gets no faster."""
    before = _one_pass(size)
    for _ in range(PASSES_MAX - 1):
        seconds = _one_pass(size)
        if seconds > before * FASTER:
            return
        before = seconds


def _one_pass(size: int) -> float:
    chunk = bytes(CHUNK_BYTES)
    began = time.perf_counter()
    with tempfile.TemporaryFile(prefix="touch-") as file:
        for _ in range(size // CHUNK_BYTES):
            os.write(file.fileno(), chunk)
    return time.perf_counter() - began

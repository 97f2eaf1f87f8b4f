"""Follows one log file through its rotation: each line once, in order.

A log that is renamed is read to its end before the next one begins; lines that an application still writes to
the renamed file are waited for. A log that is copied and truncated is read to the end of the copy. After a
restart the file is searched among the rotated ones, compressed ones included (`rotated`). Does not know:
records, Connect.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import IO

from barnabas.connect.connectors.files.lines import LineCutter, Lines
from barnabas.connect.connectors.files.rotated import (
    BEFORE_BYTES,
    BROKEN,
    HEAD_BYTES,
    Place,
    digest,
    found_again,
    holds,
    opened,
)
from barnabas.connect.plugins import ConnectError

LOG = logging.getLogger(__name__)
READ_BYTES = 1 << 20


class Tail:
    """One log. `next_lines` returns what is new; `place` says how far the lines went that it returned."""

    def __init__(self, path: Path, place: Place | None, rotate_wait_s: float, from_end: bool) -> None:
        self._path = path
        self._rotate_wait_s = rotate_wait_s
        self._file: IO[bytes] | None = None
        self._inode = 0
        self._read = 0  # how far the file was read
        self._position = 0  # behind the last line that was returned
        self._head = self._before = b""  # of what was returned: how the file is recognised
        self._cutter = LineCutter()
        self._is_current = True  # the open file is, or was, the log under its own name
        self._quiet_since: float | None = None
        if place is not None:
            self._resume(place)
        elif from_end and path.exists():
            self._open(path, path.stat().st_size)

    def place(self) -> Place:
        return Place(self._inode, self._position, digest(self._head), len(self._head), digest(self._before))

    def next_lines(self, count_max: int) -> Lines | None:
        """Lines that came; None if there are none now."""
        lines = self._cutter.pop(count_max)
        while lines is None and self._fill():
            lines = self._cutter.pop(count_max)
        if lines is None and self._is_over():
            lines = self._cutter.rest()  # a last line without an end
            if lines is None:
                self._go_on()
        if lines is not None:
            self._position += lines.byte_count
            if len(self._head) < HEAD_BYTES:
                self._head = (self._head + lines.data[:HEAD_BYTES])[:HEAD_BYTES]
            self._before = (self._before + lines.data)[-BEFORE_BYTES:]
        return lines

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _resume(self, place: Place) -> None:
        found = found_again(self._path, place)
        if found is None and place.position == 0:
            return  # nothing was read yet
        if found is None:
            raise ConnectError(
                f"{self._path} was read up to byte {place.position}, but neither it nor a rotated file"
                " beside it has the bytes before: bring that file back, or reset the connector's offsets"
            )
        self._open(found[0], place.position)

    def _open(self, path: Path, position: int) -> None:
        self.close()
        self._file = opened(path)
        self._inode = os.fstat(self._file.fileno()).st_ino
        self._head = self._file.read(min(position, HEAD_BYTES))
        start = max(0, position - BEFORE_BYTES)
        self._file.seek(start)
        self._before = self._file.read(position - start)
        self._position = self._read = position
        self._cutter = LineCutter()
        self._quiet_since = None
        self._is_current = path == self._path

    def _fill(self) -> bool:
        """Read on; whether there was something."""
        if self._file is None:
            if not self._path.exists():
                return False
            self._open(self._path, 0)
        assert self._file is not None
        if self._is_current and self._was_truncated(self._file):
            self._read_copy()
        piece = self._file.read(READ_BYTES)
        self._read += len(piece)
        if piece:
            self._cutter.feed(piece)
            self._quiet_since = None
        return bool(piece)

    def _was_truncated(self, file: IO[bytes]) -> bool:
        """The file is shorter than what was read of it, or grew again and has other bytes there."""
        is_other = os.fstat(file.fileno()).st_size < self._read or not holds(file, self.place())
        file.seek(self._read)
        return is_other

    def _read_copy(self) -> None:
        """Copied and truncated: the rest is in the copy, then the log begins anew."""
        place = self.place()
        found = found_again(self._path, place) if place.position else None
        if found is None or found[0] == self._path:
            if self._read:
                LOG.warning(
                    "%s was truncated after byte %d, and no copy has these bytes: reading it from its start",
                    self._path,
                    place.position,
                )
            self._open(self._path, 0)
            return
        self._open(found[0], place.position)

    def _is_over(self) -> bool:
        """The open file is not the log any more, and nobody wrote to it for a while."""
        if self._file is None:
            return False
        if not self._is_current:
            return True
        try:
            if self._path.stat().st_ino == self._inode:
                return False
        except FileNotFoundError:
            pass
        now = time.monotonic()
        if self._quiet_since is None:
            self._quiet_since = now
        return now - self._quiet_since >= self._rotate_wait_s

    def _go_on(self) -> None:
        """Open the file that follows: a later rotated one, or the log. Names are looked up anew each time,
        because the next rotation changes them."""
        found = found_again(self._path, self.place())
        if found is None or not found[1]:
            after = self._path if self._path.exists() and self._is_gone(found) else None
        else:
            after = found[1][0]
        if after is None:
            return
        try:
            self._open(after, 0)
        except BROKEN as error:
            LOG.warning("%s cannot be read yet, trying again: %s", after, error)

    def _is_gone(self, found: tuple[Path, list[Path]] | None) -> bool:
        """The open file was deleted after it was read, so the log is what follows."""
        return found is None or found[0] != self._path

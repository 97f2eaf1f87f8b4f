"""Cuts complete lines out of bytes, as columns.

In: bytes of a file, in pieces of any size. Out: an Arrow column of texts, and how many bytes and characters
the lines took. Lines end with LF, CR LF or CR, as in Java's readers. Bytes that are no UTF-8 become U+FFFD.
Does not know: files, offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

LINE_BYTES_MAX = 64 << 20
LF, CR = 10, 13


class LineTooLong(ValueError):
    """A line has more bytes than LINE_BYTES_MAX."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines as a column of texts, with what they took of the input, line ends included."""

    texts: Any  # pa.Array of string
    data: bytes  # the lines as they were, line ends included
    char_count: int

    @property
    def byte_count(self) -> int:
        return len(self.data)


class LineCutter:
    """Holds bytes until their line is complete. `feed` adds bytes, `pop` removes lines."""

    def __init__(self) -> None:
        self._data = b""
        self._start = 0  # of the first line that was not popped
        self._ends = np.zeros(0, np.int64)  # of complete lines, from `_start` on

    @property
    def bytes_waiting(self) -> int:
        return len(self._data) - self._start

    def feed(self, piece: bytes) -> None:
        self._data, self._start = self._data[self._start :] + piece, 0
        self._ends = ends_of_lines(self._data)
        if len(self._data) > LINE_BYTES_MAX and not len(self._ends):
            raise LineTooLong(f"a line has more than {LINE_BYTES_MAX} bytes: the file is no text of lines")

    def pop(self, count_max: int) -> Lines | None:
        """At most `count_max` complete lines; None if there is none."""
        count = min(count_max, len(self._ends))
        if count <= 0:
            return None
        start, self._start = self._start, int(self._ends[count - 1])
        self._ends = self._ends[count:]
        return lines_of(self._data[start : self._start])

    def rest(self) -> Lines | None:
        """The rest of the file as one last line, although its end is missing."""
        piece, self._data, self._start = self._data[self._start :], b"", 0
        self._ends = self._ends[:0]
        return lines_of(piece, has_end=piece.endswith(b"\r")) if piece else None


def ends_of_lines(data: bytes) -> Any:
    """The place behind each complete line. A CR at the very end may be half of a CR LF, so its line waits."""
    letters = np.frombuffer(data, np.uint8)
    is_end = letters == LF
    if b"\r" in data:
        is_end[:-1] |= (letters[:-1] == CR) & ~is_end[1:]
    return np.flatnonzero(is_end) + 1


def lines_of(given: bytes, *, has_end: bool = True) -> Lines:
    """The column of the lines; the last one may have no end."""
    piece, char_count = given, len(given)
    if not given.isascii():
        text = given.decode(errors="replace")
        char_count = len(text.encode("utf-16-le")) // 2  # Java's characters
        piece = text.encode()
    if not has_end:
        piece += b"\n"
    if b"\r" in piece:
        piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == LF)
    count = len(ends)
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends - np.arange(count)
    texts = pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets.tobytes()), pa.py_buffer(piece.replace(b"\n", b""))
    )
    return Lines(texts, given, char_count)

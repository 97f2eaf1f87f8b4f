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
    """Holds bytes until their line is complete. `feed` adds bytes, `take` removes lines."""

    def __init__(self) -> None:
        self._waiting = b""

    @property
    def bytes_waiting(self) -> int:
        return len(self._waiting)

    def feed(self, piece: bytes) -> None:
        self._waiting += piece
        if len(self._waiting) > LINE_BYTES_MAX and find_end(self._waiting, 1) == 0:
            raise LineTooLong(f"a line has more than {LINE_BYTES_MAX} bytes: the file is no text of lines")

    def pop(self, count_max: int) -> Lines | None:
        """At most `count_max` complete lines; None if there is none."""
        end = find_end(self._waiting, count_max)
        if end == 0:
            return None
        piece, self._waiting = self._waiting[:end], self._waiting[end:]
        return lines_of(piece)

    def rest(self) -> Lines | None:
        """The rest of the file as one last line, although its end is missing."""
        if not self._waiting:
            return None
        piece, self._waiting = self._waiting, b""
        return lines_of(piece, has_end=piece.endswith(b"\r"))


def find_end(data: bytes, count_max: int) -> int:
    """The end of the first `count_max` complete lines; 0 if there is none. A CR at the very end may be half
    of a CR LF, so its line waits."""
    if b"\r" not in data:
        if count_max == 1:
            return data.find(b"\n") + 1
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        return 0 if not len(ends) else int(ends[min(count_max, len(ends)) - 1]) + 1
    end = 0
    for line in data.splitlines(keepends=True)[:count_max]:
        if line.endswith(b"\n") or (line.endswith(b"\r") and end + len(line) < len(data)):
            end += len(line)
        else:
            break
    return end


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
    ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == 10)
    count = len(ends)
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends - np.arange(count)
    texts = pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets.tobytes()), pa.py_buffer(piece.replace(b"\n", b""))
    )
    return Lines(texts, given, char_count)

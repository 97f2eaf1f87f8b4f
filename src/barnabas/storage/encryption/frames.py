"""The layout of an encrypted file: a header, then pages of frames.

In: the bytes of a file. Out: where its frames are. Each write adds frames and changes none, so a crash can
damage only frames that were not synced. A frame tells which plain bytes it holds (`start`, `length`). No
frame crosses the end of a page, so the start of every page is the start of a frame, and a reader finds a
position with a search over pages.

    file   = header (48 bytes), frames, zeros to the end of the page, frames, ...
    frame  = kind (1), length (3), start (8), checksum of these (4), nonce (12), encrypted bytes, tag (16)

A frame may begin before the end of the frame in front of it: the file was truncated there, and the later
frame counts. The checksum keeps a frame that a crash has torn from doing so. Does not know: keys.
"""

import struct
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from barnabas.runtime.disk import Disk

MAGIC = (
    b"\xba\xb5BRNENC"  # no plain data file begins so: every format begins with a number that is not negative
)
HEADER_BYTES = 48
PAGE_BYTES = 64 * 1024
NONCE_BYTES = 12
TAG_BYTES = 16
HEAD_BYTES = 16
CHECKED_BYTES = 12  # of the head, in front of their checksum
FRAME_OVERHEAD = HEAD_BYTES + NONCE_BYTES + TAG_BYTES
ROOM_BYTES_MIN = 64  # fewer bytes at the end of a page stay unused
LENGTH_MASK = 0xFFFFFF

PADDING, DATA, CUT, END = range(4)  # kinds of frames; a cut or an end holds no bytes

_head = struct.Struct(">IQI")
_checked = struct.Struct(">IQ")
unpack_head = _head.unpack_from


class Frame(NamedTuple):
    at: int  # where it begins in the file
    kind: int
    start: int  # position of its first plain byte
    length: int

    @property
    def end(self) -> int:
        """The position after its last plain byte."""
        return self.start + self.length

    @property
    def end_at(self) -> int:
        """The position in the file behind this frame."""
        return self.at + FRAME_OVERHEAD + self.length


def pack_head(kind: int, start: int, length: int) -> bytes:
    checked = _checked.pack(kind << 24 | length, start)
    return checked + crc32(checked).to_bytes(4)


def room_at(at: int) -> int:
    """How many plain bytes a frame that begins here can hold; less than 1 if none fits."""
    return PAGE_BYTES - at % PAGE_BYTES - FRAME_OVERHEAD


def next_page(at: int) -> int:
    return at - at % PAGE_BYTES + PAGE_BYTES


def first_in_page(page: int) -> int:
    """The position of the first frame of a page."""
    return page * PAGE_BYTES if page else HEADER_BYTES


def parse(buffer: bytes | memoryview, offset: int, at: int) -> Frame | None:
    """The frame whose head is at `offset` of a buffer and at `at` of the file. None if there is none."""
    word, start, checksum = unpack_head(buffer, offset)
    kind, length = word >> 24, word & LENGTH_MASK
    if crc32(buffer[offset : offset + CHECKED_BYTES]) != checksum:
        return None
    if not DATA <= kind <= END or length > room_at(at) or start > at:
        return None
    return Frame(at, kind, start, length)


def frames_of_page(disk: Disk, descriptor: int, page: int) -> Iterator[Frame]:
    """The whole frames of a page, in order."""
    at = first_in_page(page)
    end = next_page(at)
    data = disk.pread(descriptor, end - at, at)
    base = at
    while at + FRAME_OVERHEAD <= base + len(data) and room_at(at) >= 0:
        frame = parse(data, at - base, at)
        if frame is None or frame.end_at > base + len(data):
            return
        yield frame
        at = frame.end_at


def last_frame(disk: Disk, descriptor: int) -> Frame | None:
    """The last whole frame of a file. Frames that a crash left incomplete do not count."""
    file_bytes = disk.size_of(descriptor)
    for page in range((file_bytes - 1) // PAGE_BYTES, -1, -1):
        found = deque(frames_of_page(disk, descriptor, page), maxlen=1)
        if found:
            return found[0]
    return None

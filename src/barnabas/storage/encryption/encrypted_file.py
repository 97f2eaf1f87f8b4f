"""One open encrypted file, read and written by positions of plain bytes.

In: a descriptor of the disk below. Out: plain bytes; `DamagedFile` where frames are missing or not authentic.
Appends add frames; a truncation removes frames and marks where the last one ends now. An object trusts what
it knows about the end of the file only while the size of the file confirms it, so several descriptors of one
file may be open. One thread writes; any number of threads read.
Does not know: which files are encrypted, the path of the file after a rename.
"""

import errno
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from cryptography.exceptions import InvalidTag

from barnabas.runtime.disk import Disk
from barnabas.storage.encryption.file_cipher import FileCipher, NotAuthentic, key_number_of, pack_place
from barnabas.storage.encryption.frames import (
    CHECKED_BYTES,
    CUT,
    DATA,
    END,
    FRAME_OVERHEAD,
    HEAD_BYTES,
    HEADER_BYTES,
    LENGTH_MASK,
    MAGIC,
    NONCE_BYTES,
    PADDING,
    PAGE_BYTES,
    TAG_BYTES,
    Frame,
    first_in_page,
    last_frame,
    next_page,
    parse,
    room_at,
    unpack_head,
)
from barnabas.storage.encryption.key_ring import KeyRing
from barnabas.storage.files.partial_writes import finish_write
from barnabas.storage.segments.segment import CorruptLog

RECENT_FRAMES_MAX = 512
KNOWN_PAGES_MAX = 4096
# Encrypted and written at once. Memory above 128 KiB comes from the operating system each time, page by page,
# which takes longer than to encrypt it.
PIECE_BYTES_MAX = 96 << 10
# A read ends after so many small frames, so that no read keeps the loop for long. A batch is never cut so:
# its write has small frames only at the ends of pages.
SMALL_FRAMES_MAX = 128
SMALL_BYTES = 1024  # on average


Buffer = bytes | bytearray | memoryview


class DamagedFile(CorruptLog):
    """An encrypted file with bytes that are missing or not authentic."""


class EncryptedFile:
    __slots__ = (
        "_disk", "_end_at", "_identity", "_is_complete", "_near", "_pages", "_random_bytes", "_recent",
        "_ring", "_size", "cipher", "descriptor", "path",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        descriptor: int,
        path: str,
        identity: bytes,
        ring: KeyRing,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._disk = disk
        self.descriptor = descriptor
        self.path = path
        self._identity = identity
        self._ring = ring
        self._random_bytes = random_bytes
        self.cipher: FileCipher | None = None
        self._size = 0  # plain bytes
        self._end_at = -1  # where the last frame ends; -1: the file was not looked at yet
        self._is_complete = False  # the last frame is an end mark
        self._pages: dict[int, int] = {}  # the first plain position of pages
        self._recent = array("q"), array("q")  # frames at the end of the file: start, and where it begins
        self._near = 0, HEADER_BYTES  # the end of the last read: position, and place in the file

    # Reading

    def read(self, length: int, position: int) -> bytes:
        """Read plain bytes; fewer at the end of the file, in front of a damaged frame, and if there are very
        many frames. `DamagedFile` if the first frame is damaged."""
        if length <= 0:
            return b""
        try:
            return self._read(length, position)
        except DamagedFile:
            # Another descriptor may have truncated the file: look again, with nothing remembered.
            self._forget()
            return self._read(length, position)

    def _read(self, length: int, position: int) -> bytes:
        """One loop over all frames, without objects for them: a log of small writes has thousands in a
        fetch. A frame is decrypted when the next one is known, since that one may cut it."""
        found = self._locate(position)
        if found is None:
            return b""
        at, start, is_exact = found
        wanted_end, reached = position + length, position
        decrypt = self._cipher().decrypt
        parts: list[bytes] = []
        buffer, base = b"", at
        held, held_at, held_offset, held_start, held_end = b"", 0, 0, 0, -1
        while True:
            in_page = at % PAGE_BYTES
            if in_page > PAGE_BYTES - FRAME_OVERHEAD:
                at, in_page = next_page(at), 0
            is_end = at == self._end_at and held_end >= wanted_end  # nothing cuts the last frame
            kind, offset = PADDING, at - base
            frame_end = following = wanted_end
            if not is_end:
                if offset + FRAME_OVERHEAD > len(buffer):
                    ahead = next_page(at) - at
                    if is_exact:
                        ahead = min(ahead, max(wanted_end - max(start, reached), 0) + 2 * FRAME_OVERHEAD)
                    buffer, base, offset = self._disk.pread(self.descriptor, ahead, at), at, 0
                is_end = len(buffer) < offset + FRAME_OVERHEAD
            if not is_end:
                word, following, checksum = unpack_head(buffer, offset)
                kind, size = word >> 24, word & LENGTH_MASK
                if (
                    crc32(buffer[offset : offset + CHECKED_BYTES]) != checksum
                    or not DATA <= kind <= END
                    or size > PAGE_BYTES - FRAME_OVERHEAD - in_page
                    or following > at
                ):
                    if in_page == 0 or at == HEADER_BYTES:
                        return self._damaged(parts, reached, at, "it is not there")
                    at = next_page(at)  # padding
                    continue
                frame_end = at + FRAME_OVERHEAD + size
                if frame_end > base + len(buffer):
                    ahead = max(len(buffer), frame_end - at)
                    buffer, base, offset = self._disk.pread(self.descriptor, ahead, at), at, 0
                    is_end = frame_end > base + len(buffer)  # a crash left it incomplete
            if is_end:
                following = wanted_end
            stop = min(held_end, following, wanted_end)
            if stop > reached:
                body = held_offset + HEAD_BYTES + NONCE_BYTES
                sealed = memoryview(held)[body : body + held_end - held_start + TAG_BYTES]
                head, nonce = held[held_offset : body - NONCE_BYTES], held[body - NONCE_BYTES : body]
                try:
                    plain = decrypt(nonce, sealed, pack_place(held_at) + head)
                except InvalidTag:
                    return self._damaged(parts, reached, held_at, "it is not authentic")
                whole = reached == held_start and stop == held_end
                parts.append(plain if whole else plain[reached - held_start : stop - held_start])
                reached = stop
            is_enough = len(parts) >= SMALL_FRAMES_MAX > (reached - position) // SMALL_BYTES
            if is_end or reached >= wanted_end or is_enough:
                self._near = reached, at
                return b"".join(parts) if len(parts) != 1 else parts[0]
            if following > reached:
                return self._damaged(parts, reached, at, f"bytes {reached} to {following} are missing")
            held_end = -1
            if kind == DATA and following + size > reached:
                held, held_at, held_offset, held_start = buffer, at, offset, following
                held_end = following + size
            at = frame_end

    def _damaged(self, parts: list[bytes], position: int, at: int, reason: str) -> bytes:
        if parts:
            return b"".join(parts)  # the next read reports the damage
        raise DamagedFile(
            self.path,
            position,
            f"the encrypted block at byte {at} of the file (page {at // PAGE_BYTES}) is damaged or was "
            f"changed: {reason}",
        )

    def _locate(self, position: int) -> tuple[int, int, bool] | None:
        """The beginning of a frame at or before a position, its first bytes, and whether it is
        the last such frame. None if the file has no frame."""
        starts, places = self._recent
        if starts and position >= starts[0]:
            slot = bisect_right(starts, position) - 1
            return places[slot], starts[slot], True
        file_bytes = self._disk.size_of(self.descriptor)
        if file_bytes < HEADER_BYTES + FRAME_OVERHEAD:
            return None
        low, high = 0, (file_bytes - 1) // PAGE_BYTES + 1  # pages; the answer is in [low, high)
        start = 0
        guess = position // (PAGE_BYTES - FRAME_OVERHEAD)  # right for a file that was written in large pieces
        guesses = [guess - 1, guess + 1, guess]
        while high - low > 1:
            page = guesses.pop() if guesses else (low + high) // 2
            if not low < page < high:
                continue
            found = self._start_of(page)
            if found is not None and found <= position:
                low, start = page, found
            else:
                high = page  # also if its start is damaged: the search goes on in front of it
        return first_in_page(low), start, False

    def _start_of(self, page: int) -> int | None:
        known = self._pages.get(page)
        if known is not None:
            return known
        at = first_in_page(page)
        head = self._disk.pread(self.descriptor, FRAME_OVERHEAD, at)
        frame = parse(head, 0, at) if len(head) == FRAME_OVERHEAD else None
        if frame is None:
            return None
        if len(self._pages) >= KNOWN_PAGES_MAX:
            self._pages = {}
        self._pages[page] = frame.start
        return frame.start

    def place_of(self, position: int) -> int:
        """Roughly where a position is in the file. Reads nothing."""
        starts, places = self._recent
        if starts and position >= starts[0]:
            return places[bisect_right(starts, position) - 1]
        known, at = self._near
        return max(at + position - known, 0)

    # The end

    @property
    def size(self) -> int:
        """The number of plain bytes."""
        self._look()
        return self._size

    @property
    def is_complete(self) -> bool:
        """Whether the file ends with an authentic end mark."""
        self._look()
        if not self._is_complete:
            return False
        found = last_frame(self._disk, self.descriptor)
        assert found is not None
        sealed = self._disk.pread(self.descriptor, FRAME_OVERHEAD - HEAD_BYTES, found.at + HEAD_BYTES)
        try:
            self._cipher().open(found, sealed)
        except NotAuthentic:
            return False
        return True

    def _look(self) -> int:
        """Find the end of the file, unless it is where this object left it. Returns the file's size."""
        file_bytes = self._disk.size_of(self.descriptor)
        if file_bytes == self._end_at:
            return file_bytes
        self._forget()
        self._size, self._end_at, self._is_complete = 0, 0, False
        if file_bytes >= HEADER_BYTES:
            found = last_frame(self._disk, self.descriptor)
            self._end_at = HEADER_BYTES
            if found is not None:
                self._size, self._end_at, self._is_complete = found.end, found.end_at, found.kind == END
        return file_bytes

    def _forget(self) -> None:
        self._pages, self._recent = {}, (array("q"), array("q"))
        self.cipher = None

    # Writing

    def write(self, buffers: Sequence[Buffer], position: int) -> int:
        """Write plain bytes at the end of the file. In front of the end, the rest is truncated first."""
        if self._look() != self._end_at or position != self._size:
            self.truncate(position)
        if position > self._size:
            reason = f"cannot write at byte {position}: the encrypted file ends at {self._size}"
            raise OSError(errno.EINVAL, reason, self.path)
        cipher = self._cipher()
        before = self._size, self._end_at, self._is_complete
        starts, places = self._recent
        try:
            for piece in pieces(buffers):
                parts, frames = cipher.frames(piece, self._size, self._end_at or HEADER_BYTES)
                self._append(parts, frames[-1], cipher)
                for frame in frames:  # the place first: a reader may look between the two
                    places.append(frame.at)
                    starts.append(frame.start)
        except OSError:
            self._size, self._end_at, self._is_complete = before
            self._recent = array("q"), array("q")
            self._disk.ftruncate(self.descriptor, self._end_at)
            raise
        if len(starts) > RECENT_FRAMES_MAX:
            kept = -RECENT_FRAMES_MAX // 2
            self._recent = starts[kept:], places[kept:]
        return self._size - position

    def truncate(self, length: int) -> None:
        """Remove the plain bytes from a position on. A longer length changes nothing."""
        disk, descriptor = self._disk, self.descriptor
        if self._look() > self._end_at:  # a write failed, or a crash left a part of a frame
            disk.ftruncate(descriptor, self._end_at)
        if length >= self._size:
            return
        self._forget()
        if length == 0:
            disk.ftruncate(descriptor, 0)
            self._size = self._end_at = 0
            self._is_complete = False
            return
        last = self._frame_at(length - 1)
        end = last
        if last.end > length:
            # The frame itself stays as it is, since rewriting it could lose synced bytes in a crash. The mark
            # is written before the rest is removed: bytes that an earlier mark has cut must not come back.
            mark, end = self._cipher().mark(CUT, length, last.end_at)
            finish_write(disk, descriptor, [memoryview(mark)], last.end_at, 0)
        disk.ftruncate(descriptor, end.end_at)
        self._size, self._end_at, self._is_complete = length, end.end_at, False

    def complete(self) -> None:
        """Mark the end, so that a file that is cut off later can be recognised."""
        self.truncate(self.size)
        if not self.is_complete:  # also if a crash has damaged the mark
            cipher = self._cipher()
            mark, frame = cipher.mark(END, self._size, self._end_at or HEADER_BYTES)
            self._append([mark], frame, cipher)  # the next write removes the rest of a failed one

    def _frame_at(self, position: int) -> Frame:
        """The frame that holds the byte at a position."""
        found = self._locate(position)
        best: Frame | None = None
        at = found[0] if found is not None else self._end_at
        while at < self._end_at:
            if room_at(at) < 0:
                at = next_page(at)
                continue
            head = self._disk.pread(self.descriptor, FRAME_OVERHEAD, at)
            frame = parse(head, 0, at) if len(head) == FRAME_OVERHEAD else None
            if frame is None:
                at = next_page(at)
                continue
            if frame.start > position:
                break
            if frame.kind == DATA:
                best = frame
            at = frame.end_at
        if best is None or best.end <= position:
            raise DamagedFile(self.path, position, "no encrypted block holds this position")
        return best

    def _append(self, parts: list[bytes], last: Frame, cipher: FileCipher) -> None:
        disk, descriptor, at = self._disk, self.descriptor, self._end_at
        if at == 0:
            parts = [cipher.header, *parts]
        written = disk.pwritev(descriptor, parts, at)
        if written != last.end_at - at:
            finish_write(disk, descriptor, [memoryview(part) for part in parts], at, written)
        self._size, self._end_at, self._is_complete = last.end, last.end_at, last.kind == END

    # Keys

    @property
    def key_number(self) -> int:
        """The number of its data key; for an empty file, of the key that it will get."""
        return self._cipher().key_number

    def _cipher(self) -> FileCipher:
        """The cipher of an existing file, or a new one with the current data key for an empty file."""
        cipher = self.cipher  # read once: another thread may forget it
        if cipher is None:
            ring = self._ring
            header = self._disk.pread(self.descriptor, HEADER_BYTES, 0)
            if len(header) < HEADER_BYTES:
                number = ring.current
                assert number is not None  # the disk makes no encrypted file without a current key
                key = ring.key(number, self.path)
                cipher = self.cipher = FileCipher(key, number, self._identity, self._random_bytes)
                return cipher
            if not header.startswith(MAGIC):
                raise DamagedFile(self.path, 0, "the header of the encrypted file is damaged")
            number = key_number_of(header)
            try:
                cipher = self.cipher = FileCipher(
                    ring.key(number, self.path), number, self._identity, self._random_bytes, header
                )
            except NotAuthentic:
                raise DamagedFile(
                    self.path,
                    0,
                    "the header of the encrypted file is not authentic: it was changed, or the file was "
                    "written under another name",
                ) from None
        return cipher


def pieces(buffers: Sequence[Buffer]) -> Iterator[Buffer]:
    """The bytes of many buffers in pieces that are encrypted and written one after the other. The memory of
    one is used again for the next, which costs less than new memory for all."""
    small: list[Buffer] = []
    small_bytes = 0
    for buffer in buffers:
        size = len(buffer)
        if size and size + small_bytes <= PIECE_BYTES_MAX:
            small.append(buffer)
            small_bytes += size
            continue
        if small:
            yield b"".join(small) if len(small) > 1 else small[0]
        small, small_bytes = [], 0
        view = memoryview(buffer)
        for at in range(0, size, PIECE_BYTES_MAX):
            yield view[at : at + PIECE_BYTES_MAX]
    if small:
        yield b"".join(small) if len(small) > 1 else small[0]

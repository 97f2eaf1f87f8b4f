"""Compressed records are unpacked into one buffer that is used again and again.

In: the compressed bodies of batches. Out: their bytes in the buffer, one behind the other. Memory that was
just used is in the processor's caches, and memory that is kept costs no page faults: with records that expand
much this is most of the time. A body that does not fit says so; the buffer grows up to a limit only.
Does not know: batches, records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cramjam

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.compression import Compression, decompress

ROOM_BYTES = 6 * 1024 * 1024
UNPACKED_BYTES_MAX = 2**31 - 1
GROWTH = 4
OUTPUT_FULL = "failed to write whole buffer"  # what cramjam says when the output buffer is too small
INTO: dict[int, Callable[[Any, Any], int]] = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}


class RoomFull(Exception):
    """There is too little room behind what is there already."""


class Room:
    def __init__(self, size: int = ROOM_BYTES) -> None:
        self._size_first = size
        self.data = bytearray()  # until something is unpacked
        self.filled = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.filled

    def clear(self) -> None:
        """Forget the content of the buffer; an unusually large one is given back."""
        self.filled = 0
        if len(self.data) > GROWTH * self._size_first:
            self.data = bytearray()

    def unpack(self, codec: int, body: memoryview) -> int:
        """How many bytes came out, behind what is there. RoomFull when they do not fit; an empty room
        grows."""
        if not self.data:
            self._grow()
        while True:
            try:
                size = self._try(codec, body)
            except RoomFull:
                if self.filled:
                    raise
                self._grow()
                continue
            self.filled += size
            return size

    def _try(self, codec: int, body: memoryview) -> int:
        into = INTO.get(codec)
        if into is None:  # snappy, in blocks that say how large they are
            found = decompress(codec, body, UNPACKED_BYTES_MAX)
            if len(found) > self.left:
                raise RoomFull
            self.data[self.filled : self.filled + len(found)] = found
            return len(found)
        try:
            return into(body, memoryview(self.data)[self.filled :])
        except cramjam.DecompressionError as error:
            if str(error) == OUTPUT_FULL:
                raise RoomFull from None
            name = Compression(codec).name.lower()
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"cannot decompress {name} records: {error}"
            ) from None

    def _grow(self) -> None:
        if len(self.data) >= UNPACKED_BYTES_MAX:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"records decompress to more than {UNPACKED_BYTES_MAX} bytes"
            )
        self.data = bytearray(min(max(GROWTH * len(self.data), self._size_first), UNPACKED_BYTES_MAX))

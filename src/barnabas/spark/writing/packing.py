"""Records are compressed behind the room for a batch's header, in buffers that are used again.

In: the records of a batch. Out: a buffer of the batch's size whose header is still to be filled in. lz4 is
written as frames of independent blocks, as Java's client does: blocks of a size that suits caches, straight
into the frame. Does not know: headers, rows.
"""

from __future__ import annotations

from typing import Any

import cramjam
import numpy as np

from barnabas.records.batch import BATCH_OVERHEAD
from barnabas.records.compression import Compression, compress

LZ4_HEADER = bytes.fromhex("04224d186050fb")  # version 1, independent blocks of at most 256 KiB, no checksums
LZ4_BLOCK_BYTES = 128 * 1024  # up to 64 KiB the codec uses another table, which is slower on short records
LZ4_BLOCK_BYTES_MAX = LZ4_BLOCK_BYTES + LZ4_BLOCK_BYTES // 255 + 16  # what the worst block becomes
LZ4_STORED = 1 << 31  # a block that did not become smaller
LZ4_END = bytes(4)
LEVELS = {  # what the codec's own levels may be, as in Kafka's producer, and what is taken without one
    Compression.GZIP: (1, 9, None),
    Compression.LZ4: (1, 17, None),
    Compression.ZSTD: (-131072, 22, 1),
}


class Packing:
    def __init__(self, codec: int, level: int | None = None) -> None:
        """`level` None is ours for the codec."""
        self._codec = codec
        self._level = level if level is not None else LEVELS.get(Compression(codec), (0, 0, None))[2]
        self._is_fast_lz4 = codec == Compression.LZ4 and level is None
        self._room = np.empty(0, np.uint8)
        self._records = np.empty(0, np.uint8)

    def records_room(self, size: int) -> Any:
        """The buffer for records before they are compressed; its former content is lost."""
        if len(self._records) < size:
            self._records = np.empty(size, np.uint8)
        return self._records

    def packed(self, records: Any) -> bytearray:
        """The compressed records behind the room for a header."""
        if self._is_fast_lz4:
            size = self._lz4(records)
        elif self._codec == Compression.ZSTD:
            out = self._reserve(2 * len(records) + 1024)
            size = cramjam.zstd.compress_into(records, out[BATCH_OVERHEAD:], self._level)
        else:
            return bytearray(BATCH_OVERHEAD) + compress(self._codec, memoryview(records), self._level)
        return bytearray(self._room[: BATCH_OVERHEAD + size].data)

    def _lz4(self, records: Any) -> int:
        """How many bytes the frame has."""
        blocks = len(records) // LZ4_BLOCK_BYTES + 1
        out = memoryview(self._reserve(blocks * (LZ4_BLOCK_BYTES_MAX + 4) + 64))
        position = BATCH_OVERHEAD
        out[position : position + len(LZ4_HEADER)] = LZ4_HEADER
        position += len(LZ4_HEADER)
        for start in range(0, len(records), LZ4_BLOCK_BYTES):
            block = records[start : start + LZ4_BLOCK_BYTES]
            at = position + 4
            size = cramjam.lz4.compress_block_into(
                block, out[at : at + LZ4_BLOCK_BYTES_MAX], store_size=False
            )
            word = size
            if size >= len(block):
                size = len(block)
                word = size | LZ4_STORED
                out[at : at + size] = memoryview(block)
            out[position:at] = word.to_bytes(4, "little")
            position = at + size
        out[position : position + len(LZ4_END)] = LZ4_END
        return position + len(LZ4_END) - BATCH_OVERHEAD

    def _reserve(self, size: int) -> Any:
        if len(self._room) < BATCH_OVERHEAD + size:
            self._room = np.empty(BATCH_OVERHEAD + size, np.uint8)
        return self._room

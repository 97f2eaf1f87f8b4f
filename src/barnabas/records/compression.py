"""The four codecs of record batches: gzip, snappy, lz4 and zstd, compatible with Java and librdkafka.

In: bytes and, for decompression, a limit of the output. Out: bytes. Hostile input cannot allocate more memory
than the limit: the output buffer starts small and grows as needed.
Does not know: batches, records, settings.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.crc32c import Buffer


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024  # the default limit
EXPANSION_FIRST_GUESS = 4  # first output buffer relative to the input; each next one is 4 times larger
OUTPUT_BYTES_MIN = 16 * 1024

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_VERSION = 1
XERIAL_BLOCK_BYTES = 32 * 1024
_xerial_header = Struct(">8sii")
_block_length = Struct(">i")

SNAPPY_TRIED_BYTES_MAX = 32 * 1024
SNAPPY_EXPANSION_MAX = 64  # bytes of output for two bytes of input

GZIP_DEFAULT_LEVEL = 6
LZ4_DEFAULT_LEVEL = 9
LZ4_FAST = 1
LZ4_HIGH_MIN = 3
ZSTD_DEFAULT_LEVEL = 3

LZ4_FLAGS_AT = 4
LZ4_DICTIONARY, LZ4_CONTENT_CHECKSUM, LZ4_CONTENT_SIZE, LZ4_BLOCK_CHECKSUM = 0x01, 0x04, 0x08, 0x10
LZ4_SIZE_MASK = 0x7FFFFFFF  # the highest bit: the block is not compressed

_OUTPUT_FULL = "failed to write whole buffer"  # cramjam's message if the output buffer is too small


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress a batch's records. `level` is the codec's own scale; None is Kafka's default."""
    if codec == Compression.NONE:
        return bytes(data)
    import cramjam

    if codec == Compression.GZIP:
        # In Java, -1 means the default level of the library.
        return bytes(cramjam.gzip.compress(data, GZIP_DEFAULT_LEVEL if level in (None, -1) else level))
    if codec == Compression.SNAPPY:
        return _compress_xerial(data)
    if codec == Compression.LZ4:
        # Blocks must be independent, since Java's reader refuses linked ones. Kafka's default level means the
        # fast compressor, every other level the high compressor.
        level = LZ4_FAST if level is None or level == LZ4_DEFAULT_LEVEL else max(level, LZ4_HIGH_MIN)
        stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        stream.compress(bytes(data))
        return bytes(stream.finish())
    if codec == Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, ZSTD_DEFAULT_LEVEL if level is None else level))
    raise unsupported(codec)


def decompress(codec: int, data: Buffer, limit: int = DECOMPRESSED_BYTES_MAX, guess: int = 0) -> bytes:
    """Decompress. MESSAGE_TOO_LARGE for more than `limit` bytes, CORRUPT_MESSAGE for invalid data. `guess` is
    the expected size of the output: a first buffer that is too small costs a second attempt."""
    if codec == Compression.NONE:
        return bytes(data)
    import cramjam

    try:
        if codec == Compression.GZIP:
            return _decompress_bounded(cramjam.gzip.decompress_into, data, limit, guess)
        if codec == Compression.SNAPPY:
            return _decompress_snappy(data, limit)
        if codec == Compression.LZ4:
            return _decompress_bounded(cramjam.lz4.decompress_into, data, limit, guess)
        if codec == Compression.ZSTD:
            return _decompress_bounded(cramjam.zstd.decompress_into, data, limit, guess)
    except cramjam.DecompressionError as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"cannot decompress {Compression(codec).name.lower()} records: {error}"
        ) from None
    raise unsupported(codec)


def unsupported(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no compression type has the number {codec}")


def _too_large(limit: int) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"records decompress to more than {limit} bytes")


def _decompress_bounded(
    decompress_into: Callable[[Any, Any], int], data: Buffer, limit: int, guess: int = 0
) -> bytes:
    import cramjam

    size = min(limit, max(OUTPUT_BYTES_MIN, EXPANSION_FIRST_GUESS * len(data), guess))
    while True:
        output = bytearray(size)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if str(error) != _OUTPUT_FULL:
                raise
            if size >= limit:
                raise _too_large(limit) from None
            size = min(limit, size * EXPANSION_FIRST_GUESS)
            continue
        return bytes(memoryview(output)[:written])


def is_raw_snappy(data: Buffer, bytes_min: int) -> bool:
    """Whether the data looks like an unframed snappy block of at least `bytes_min` decompressed bytes. Such a
    block has no magic bytes: a small one is decompressed as a test, of a large one only the length is
    checked."""
    import cramjam

    try:
        claimed: int = cramjam.snappy.decompress_raw_len(data)
        if not bytes_min <= claimed <= SNAPPY_EXPANSION_MAX * len(data):
            return False
        if claimed <= SNAPPY_TRIED_BYTES_MAX:
            cramjam.snappy.decompress_raw_into(data, bytearray(claimed))
    except cramjam.DecompressionError:
        return False
    return True


def is_one_lz4_frame(data: Buffer) -> bool:
    """Whether valid lz4 data is a single frame: Java's reader stops after the first."""
    flags = data[LZ4_FLAGS_AT]
    position = LZ4_FLAGS_AT + 3  # block size and the header's checksum
    position += 8 if flags & LZ4_CONTENT_SIZE else 0
    position += 4 if flags & LZ4_DICTIONARY else 0
    while True:
        size = int.from_bytes(data[position : position + 4], "little") & LZ4_SIZE_MASK
        position += 4
        if not size:  # the end mark
            break
        position += size + (4 if flags & LZ4_BLOCK_CHECKSUM else 0)
    return position + (4 if flags & LZ4_CONTENT_CHECKSUM else 0) >= len(data)


def _compress_xerial(data: Buffer) -> bytes:
    import cramjam

    view = memoryview(data)
    parts: list[bytes] = [_xerial_header.pack(XERIAL_MAGIC, XERIAL_VERSION, XERIAL_VERSION)]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (_block_length.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _decompress_block(view, limit)
    output = bytearray()
    position = _xerial_header.size
    while position < len(view):
        if view[position : position + len(XERIAL_MAGIC)] == XERIAL_MAGIC:  # concatenated streams
            position += _xerial_header.size
            continue
        if len(view) - position < _block_length.size:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "snappy records end within a block length")
        (size,) = _block_length.unpack_from(view, position)
        position += _block_length.size
        if not 0 <= size <= len(view) - position:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"snappy block of {size} bytes, but {len(view) - position} are left",
            )
        output += _decompress_block(view[position : position + size], limit, len(output))
        position += size
    return bytes(output)


def _decompress_block(block: memoryview, limit: int, produced: int = 0) -> bytes:
    import cramjam

    # The length in front of a block comes from the client and cannot be trusted.
    claimed = cramjam.snappy.decompress_raw_len(block)
    if claimed > limit - produced:
        raise _too_large(limit)
    if claimed > SNAPPY_EXPANSION_MAX * len(block):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"snappy block of {len(block)} bytes claims {claimed} bytes"
        )
    output = bytearray(claimed)
    written = cramjam.snappy.decompress_raw_into(block, output)
    return bytes(memoryview(output)[:written])

"""Zigzag varints of the record format: small positive and negative numbers take few bytes.

In: an integer, or bytes and a position. Out: bytes, or the number and the position after it. IndexError at
the end of the data, ValueError for an invalid varint.
"""

INT32_BYTES_MAX = 5
INT64_BYTES_MAX = 10

ONE_BYTE_VALUES = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))
_ONE_BYTE = [bytes([(number << 1) ^ (number >> 63)]) for number in range(-64, 64)]
_SMALL_MAX = 1024  # most sizes and offset deltas; a lookup is faster than computing
_SMALL = _ONE_BYTE[64:] + [
    bytes((number << 1 & 0x7F | 0x80, number >> 6)) for number in range(64, _SMALL_MAX)
]


def encode(number: int) -> bytes:
    """Encode a signed number of up to 64 bits."""
    if 0 <= number < _SMALL_MAX:
        return _SMALL[number]
    if -64 <= number < 0:
        return _ONE_BYTE[number + 64]
    rest = (number << 1) ^ (number >> 63)
    if rest < 0x4000:
        return bytes((rest & 0x7F | 0x80, rest >> 7))
    if rest < 0x200000:
        return bytes((rest & 0x7F | 0x80, rest >> 7 & 0x7F | 0x80, rest >> 14))
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode(
    data: bytes | bytearray | memoryview, position: int, bytes_max: int = INT32_BYTES_MAX
) -> tuple[int, int]:
    """Decode the number at `position`. Returns it and the position after it."""
    number = shift = 0
    for index in range(position, position + bytes_max):
        byte = data[index]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> (32 if bytes_max == INT32_BYTES_MAX else 64):
                break
            return (number >> 1) ^ -(number & 1), index + 1
        shift += 7
    raise ValueError(f"the varint at byte {position} is too long")

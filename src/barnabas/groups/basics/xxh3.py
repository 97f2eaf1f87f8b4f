"""XXH3 with 64 bits, no seed and the standard secret: the hash that consumer groups keep of their topics.

In: bytes. Out: the hash as a signed 64-bit number, as Java shows it. Plain Python: a group hashes a topic
when its partitions or their racks change, not in a hot path.
Does not know: what is hashed. The algorithm is Yann Collet's (https://xxhash.com).
"""

from __future__ import annotations

from struct import Struct, unpack_from

from barnabas.metadata.steps import Steps, at_once

MASK = 2**64 - 1
LOW = 2**32 - 1
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1, PRIME64_2, PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME64_4, PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

STRIPE_SIZE = 64
STRIPES_PER_BLOCK = 16
BLOCK_SIZE = STRIPE_SIZE * STRIPES_PER_BLOCK
SHORT_MAX, MIDDLE_MAX, LONG_FROM = 16, 128, 241
STRIPE = Struct("<8Q")
KEYS = [STRIPE.unpack_from(SECRET, place * 8) for place in range(STRIPES_PER_BLOCK)]
LAST_KEYS = STRIPE.unpack_from(SECRET, len(SECRET) - STRIPE_SIZE - 7)


def xxh3_64(data: bytes) -> int:
    return at_once(in_steps(data))


def in_steps(data: bytes) -> Steps[int]:
    """The same in steps; each takes a fraction of a millisecond."""
    size = len(data)
    if size <= SHORT_MAX:
        unsigned = short(data)
    elif size < LONG_FROM:
        unsigned = middle(data)
    else:
        unsigned = yield from long(data)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def short(data: bytes) -> int:
    size = len(data)
    if size > 8:
        low = read64(data, 0) ^ read64(SECRET, 24) ^ read64(SECRET, 32)
        high = read64(data, size - 8) ^ read64(SECRET, 40) ^ read64(SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return avalanche(size + swapped + high + fold(low, high))
    if size >= 4:
        both = read32(data, size - 4) + (read32(data, 0) << 32)
        return mix_short(both ^ read64(SECRET, 8) ^ read64(SECRET, 16), size)
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return old_avalanche(combined ^ read32(SECRET, 0) ^ read32(SECRET, 4))
    return old_avalanche(read64(SECRET, 56) ^ read64(SECRET, 64))


def middle(data: bytes) -> int:
    size = len(data)
    total = size * PRIME64_1
    if size <= MIDDLE_MAX:
        for pair in range((size - 1) // 32, -1, -1):
            total += mix16(data, 16 * pair, 32 * pair)
            total += mix16(data, size - 16 * (pair + 1), 32 * pair + 16)
        return avalanche(total)
    for at in range(0, 128, 16):
        total += mix16(data, at, at)
    total = avalanche(total)
    for at in range(128, size // 16 * 16, 16):
        total += mix16(data, at, at - 128 + 3)
    return avalanche(total + mix16(data, size - 16, 136 - 17))


def long(data: bytes) -> Steps[int]:
    size = len(data)
    lanes = [
        PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1
    ]  # fmt: skip
    for stripe in range((size - 1) // STRIPE_SIZE):
        place = stripe % STRIPES_PER_BLOCK
        accumulate(lanes, STRIPE.unpack_from(data, stripe * STRIPE_SIZE), KEYS[place])
        if place == STRIPES_PER_BLOCK - 1:
            scramble(lanes)
            yield
    accumulate(lanes, STRIPE.unpack_from(data, size - STRIPE_SIZE), LAST_KEYS)
    total = size * PRIME64_1
    for lane in range(0, 8, 2):
        key = 11 + 8 * lane
        total += fold(lanes[lane] ^ read64(SECRET, key), lanes[lane + 1] ^ read64(SECRET, key + 8))
    return avalanche(total)


def accumulate(lanes: list[int], values: tuple[int, ...], keys: tuple[int, ...]) -> None:
    """Unrolled, because this is the hot loop."""
    v0, v1, v2, v3, v4, v5, v6, v7 = values
    k0, k1, k2, k3, k4, k5, k6, k7 = keys
    a0, a1, a2, a3, a4, a5, a6, a7 = lanes
    k0 ^= v0
    k1 ^= v1
    k2 ^= v2
    k3 ^= v3
    k4 ^= v4
    k5 ^= v5
    k6 ^= v6
    k7 ^= v7
    lanes[:] = (
        (a0 + v1 + (k0 & LOW) * (k0 >> 32)) & MASK,
        (a1 + v0 + (k1 & LOW) * (k1 >> 32)) & MASK,
        (a2 + v3 + (k2 & LOW) * (k2 >> 32)) & MASK,
        (a3 + v2 + (k3 & LOW) * (k3 >> 32)) & MASK,
        (a4 + v5 + (k4 & LOW) * (k4 >> 32)) & MASK,
        (a5 + v4 + (k5 & LOW) * (k5 >> 32)) & MASK,
        (a6 + v7 + (k6 & LOW) * (k6 >> 32)) & MASK,
        (a7 + v6 + (k7 & LOW) * (k7 >> 32)) & MASK,
    )


def scramble(lanes: list[int]) -> None:
    keys = STRIPE.unpack_from(SECRET, len(SECRET) - STRIPE_SIZE)
    for lane in range(8):
        value = lanes[lane]
        lanes[lane] = (value ^ value >> 47 ^ keys[lane]) * PRIME32_1 & MASK


def mix16(data: bytes, at: int, secret_at: int) -> int:
    return fold(
        read64(data, at) ^ read64(SECRET, secret_at), read64(data, at + 8) ^ read64(SECRET, secret_at + 8)
    )


def fold(left: int, right: int) -> int:
    product = left * right
    return product & MASK ^ product >> 64


def avalanche(value: int) -> int:
    value &= MASK
    value = (value ^ value >> 37) * PRIME_MX1 & MASK
    return value ^ value >> 32


def old_avalanche(value: int) -> int:
    value = (value ^ value >> 33) * PRIME64_2 & MASK
    value = (value ^ value >> 29) * PRIME64_3 & MASK
    return value ^ value >> 32


def mix_short(value: int, size: int) -> int:
    value = (value ^ rotated(value, 49) ^ rotated(value, 24)) * PRIME_MX2 & MASK
    value = (value ^ (value >> 35) + size) * PRIME_MX2 & MASK
    return value ^ value >> 28


def rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & MASK


def read32(data: bytes, at: int) -> int:
    found: int = unpack_from("<I", data, at)[0]
    return found


def read64(data: bytes, at: int) -> int:
    found: int = unpack_from("<Q", data, at)[0]
    return found

"""Ids of new members: a readable prefix and a random UUID, as in Kafka.

In: the client or instance id, and a source of random bits. Out: text.
"""

from __future__ import annotations

from typing import Protocol

UUID_BITS = 128
VERSION_AND_VARIANT = (0xF << 76) | (0x3 << 62)
PREFIX_BYTES_MAX = 32_767 - 37  # strings on the wire have 32,767 bytes at most
PREFIX_SAFE_SIZE = PREFIX_BYTES_MAX // 4  # in characters of up to four bytes
RANDOM_UUID = (0x4 << 76) | (0x2 << 62)
# longer prefixes are cut: at four bytes a character the id would exceed the limit of a string
PREFIX_LENGTH_MAX = 8000


class Rng(Protocol):
    """A source of random bits, such as `random.Random`."""

    def getrandbits(self, k: int, /) -> int: ...


def new_member_id(prefix: str, rng: Rng) -> str:
    """`<client id or instance id>-<random UUID>`; a prefix that is too long is cut."""
    if len(prefix) > PREFIX_SAFE_SIZE:
        prefix = prefix.encode()[:PREFIX_BYTES_MAX].decode(errors="ignore")
    digits = f"{rng.getrandbits(UUID_BITS) & ~VERSION_AND_VARIANT | RANDOM_UUID:032x}"
    prefix = prefix[:PREFIX_LENGTH_MAX]
    return f"{prefix}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

"""Messages between the two tables of a foreign-key join: subscriptions and responses, and their bytes.

A row of the left table subscribes to its foreign key with a digest of its value; the response carries the
digest back, so that a response to a value that has changed since is dropped. Does not know: operators.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.plans.serdes import FromBytes, Serde, ToBytes

_LENGTH = struct.Struct(">I")
_PARTITION = struct.Struct(">i")
_VERSION = 1
_NO_DIGEST = 0x80
_NO_VALUE = b"\x00"
DIGEST_SIZE = 16


class Instruction(IntEnum):
    """The reaction of the right side to a subscription."""

    LEAVE_SILENTLY = 0
    LEAVE_AND_TELL = 1
    TELL_ALWAYS = 2
    TELL_IF_THERE = 3


class Subscription(NamedTuple):
    """`key` is that of the left row, `partition` the left task's."""

    instruction: Instruction
    digest: bytes | None
    key: Any
    partition: int


class Response(NamedTuple):
    """The value of the right table under the foreign key."""

    digest: bytes | None
    value: Any
    partition: int


def digest_of(data: bytes | None) -> bytes | None:
    """A short name for a value's bytes. It stays inside of the application."""
    return None if data is None else hashlib.blake2b(data, digest_size=DIGEST_SIZE).digest()


def combined(foreign_key: bytes, key: bytes = b"") -> bytes:
    """The key of a subscription in its store; without a key: the prefix of all subscriptions."""
    return _LENGTH.pack(len(foreign_key)) + foreign_key + key


def key_in(data: bytes) -> bytes:
    (size,) = _LENGTH.unpack_from(data)
    return data[_LENGTH.size + size :]


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key behind all keys with a prefix."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def _head(digest: bytes | None) -> bytes:
    return bytes([_VERSION | (_NO_DIGEST if digest is None else 0)])


def _digest(data: bytes, at: int) -> tuple[bytes | None, int]:
    if data[0] & ~_NO_DIGEST != _VERSION:
        raise ValueError(
            f"version {data[0] & ~_NO_DIGEST} of a foreign-key join's record, {_VERSION} is known"
        )
    if data[0] & _NO_DIGEST:
        return None, at
    return data[at : at + DIGEST_SIZE], at + DIGEST_SIZE


@dataclass(frozen=True)
class SubscriptionSerde:
    """Subscriptions in bytes: version, instruction, digest, partition, key."""

    key: Serde | None
    format: str = "foreign-key subscription"

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        write = as_bytes if self.key is None else self.key.serializer(topic, True)

        def to_bytes(each: Subscription) -> bytes:
            parts = _head(each.digest) + bytes([each.instruction]) + (each.digest or b"")
            return parts + _PARTITION.pack(each.partition) + write(each.key)

        return to_bytes

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        read = as_bytes if self.key is None else self.key.deserializer(topic, True)

        def from_bytes(data: bytes) -> Subscription:
            digest, at = _digest(data, 2)
            (partition,) = _PARTITION.unpack_from(data, at)
            return Subscription(Instruction(data[1]), digest, read(data[at + _PARTITION.size :]), partition)

        return from_bytes


@dataclass(frozen=True)
class ResponseSerde:
    """Responses in bytes: version, digest, partition, whether a value follows, the value."""

    value: Serde | None
    format: str = "foreign-key response"

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        write = as_bytes if self.value is None else self.value.serializer(topic, False)

        def to_bytes(each: Response) -> bytes:
            value = _NO_VALUE if each.value is None else b"\x01" + write(each.value)
            return _head(each.digest) + (each.digest or b"") + _PARTITION.pack(each.partition) + value

        return to_bytes

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        read = as_bytes if self.value is None else self.value.deserializer(topic, False)

        def from_bytes(data: bytes) -> Response:
            digest, at = _digest(data, 1)
            (partition,) = _PARTITION.unpack_from(data, at)
            at += _PARTITION.size
            value = None if data[at : at + 1] == _NO_VALUE else read(data[at + 1 :])
            return Response(digest, value, partition)

        return from_bytes


def as_bytes(data: Any) -> Any:
    return data


def to_the_left_task(topic: str, key: Any, response: Response) -> int:
    """Responses go back to the task of the left row, whatever its topic's partitioner was."""
    return response.partition

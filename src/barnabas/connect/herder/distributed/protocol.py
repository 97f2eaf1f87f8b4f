"""Subscriptions and assignments of workers in Connect's own bytes (protocols default, compatible, sessioned).

In: values. Out: bytes that an Apache worker reads, and the other way round. ValueError for bytes that are no
message of the protocol. Does not know: groups, how work is shared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.connect.herder.states import TaskId

PROTOCOLS = {"default": 0, "compatible": 1, "sessioned": 2}
CONNECTOR = -1  # the number of the connector itself among its tasks
NO_ERROR, CONFIG_MISMATCH = 0, 1
NULL = -1

Work = frozenset[TaskId]  # connectors have the number -1


@dataclass(frozen=True, slots=True)
class Assignment:
    """The share of a worker: in v1 and later only the difference to what it had."""

    error: int = NO_ERROR
    leader: str = ""
    leader_url: str = ""
    offset: int = -1
    added: Work = frozenset()
    revoked: Work = frozenset()
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Subscription:
    """Message of a worker to the leader: its URL, how far it read the config topic, what it has."""

    url: str
    offset: int
    held: Work = frozenset()


class Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def pack(self, form: str, *values: int) -> None:
        self.data += struct.pack(f">{form}", *values)

    def text(self, value: str) -> None:
        encoded = value.encode()
        self.pack("h", len(encoded))
        self.data += encoded

    def work(self, work: Work) -> None:
        names = sorted({each.connector for each in work})
        self.pack("i", len(names))
        for name in names:
            numbers = sorted(each.task for each in work if each.connector == name)
            self.text(name)
            self.pack(f"i{len(numbers)}i", len(numbers), *numbers)


class Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def unpack(self, form: str) -> int:
        size = struct.calcsize(f">{form}")
        if self._place + size > len(self._data):
            raise ValueError("a message of the worker protocol is cut short")
        (found,) = struct.unpack_from(f">{form}", self._data, self._place)
        self._place += size
        return int(found)

    def read(self, size: int) -> bytes:
        if size < 0 or self._place + size > len(self._data):
            raise ValueError("a message of the worker protocol is cut short")
        self._place += size
        return self._data[self._place - size : self._place]

    def text(self) -> str:
        return self.read(max(self.unpack("h"), 0)).decode()

    def work(self) -> Work:
        found: set[TaskId] = set()
        for _ in range(max(self.unpack("i"), 0)):
            name = self.text()
            found.update(TaskId(name, self.unpack("i")) for _ in range(max(self.unpack("i"), 0)))
        return frozenset(found)


def encode_assignment(version: int, assignment: Assignment) -> bytes:
    out = Writer()
    out.pack("hh", version, assignment.error)
    out.text(assignment.leader)
    out.text(assignment.leader_url)
    out.pack("q", assignment.offset)
    out.work(assignment.added)
    if version > 0:
        out.work(assignment.revoked)
        out.pack("i", assignment.delay_ms)
    return bytes(out.data)


def decode_assignment(data: bytes) -> Assignment:
    source = Reader(data)
    version, error = source.unpack("h"), source.unpack("h")
    leader, url, offset = source.text(), source.text(), source.unpack("q")
    added = source.work()
    if version == 0:
        return Assignment(error, leader, url, offset, added)
    return Assignment(error, leader, url, offset, added, source.work(), source.unpack("i"))


def encode_subscription(version: int, subscription: Subscription) -> bytes:
    out = Writer()
    out.pack("h", version)
    out.text(subscription.url)
    out.pack("q", subscription.offset)
    if version > 0:
        held = encode_assignment(version, Assignment(offset=subscription.offset, added=subscription.held))
        out.pack("i", len(held))
        out.data += held
    return bytes(out.data)


def decode_subscription(data: bytes) -> Subscription:
    source = Reader(data)
    version = source.unpack("h")
    url, offset = source.text(), source.unpack("q")
    if version == 0:
        return Subscription(url, offset)
    size = source.unpack("i")
    held = decode_assignment(source.read(size)).added if size > 0 else frozenset()
    return Subscription(url, offset, held)


def connectors(work: Iterable[TaskId]) -> list[str]:
    return [each.connector for each in work if each.task == CONNECTOR]

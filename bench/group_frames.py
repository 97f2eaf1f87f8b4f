"""Requests of consumer groups as bytes, and readers of their responses.

In: groups, members, topics. Out: complete frames; error codes, ids and members from responses. Uses the last
versions before the flexible ones, and `struct` only: the code under test must not build the load.
Does not know: sockets, brokers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from bench.frames import CORRELATION_BYTES, SIZE_BYTES, request

SESSION_TIMEOUT_MS = 60_000
PROTOCOL_TYPE = "consumer"
ASSIGNOR = "range"
THROTTLE_BYTES = 4
NO_TEXT = struct.pack(">h", -1)
NO_BYTES = struct.pack(">i", -1)


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def array(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def find_coordinator(group: str) -> bytes:
    return request(10, 2, text(group) + b"\0", flexible=False)


def join(group: str, member_id: str, topic: str, version: int = 5) -> bytes:
    """A JoinGroup request of a consumer of one topic; before version 4 no member id is required."""
    subscription = struct.pack(">h", 0) + array([text(topic)]) + NO_BYTES
    body = text(group) + struct.pack(">ii", SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS) + text(member_id)
    body += NO_TEXT if version >= 5 else b""
    body += text(PROTOCOL_TYPE) + array([text(ASSIGNOR) + sized(subscription)])
    return request(11, version, body, flexible=False)


def sync(group: str, generation: int, member_id: str, parts: Mapping[str, bytes]) -> bytes:
    assignments = [text(member) + sized(part) for member, part in parts.items()]
    body = text(group) + struct.pack(">i", generation) + text(member_id) + NO_TEXT + array(assignments)
    return request(14, 3, body, flexible=False)


def assignment(topic: str, partition: int) -> bytes:
    places = text(topic) + struct.pack(">ii", 1, partition)
    return struct.pack(">h", 0) + array([places]) + NO_BYTES


def assigned_partition(part: bytes, topic: str) -> int:
    """The partition in an assignment made by `assignment`."""
    return int(struct.unpack_from(">i", part, 2 + 4 + 2 + len(topic) + 4)[0])


def heartbeat(group: str, generation: int, member_id: str) -> bytes:
    body = text(group) + struct.pack(">i", generation) + text(member_id) + NO_TEXT
    return request(12, 3, body, flexible=False)


def leave(group: str, member_id: str) -> bytes:
    return request(13, 2, text(group) + text(member_id), flexible=False)


def commit(group: str, topic: str, offset: int, generation: int = -1, member_id: str = "") -> bytes:
    place = struct.pack(">iqi", 0, offset, -1) + text("")
    body = text(group) + struct.pack(">i", generation) + text(member_id) + NO_TEXT
    return request(8, 7, body + array([text(topic) + array([place])]), flexible=False)


def commit_error_at(topic: str) -> int:
    """The position of the one partition's error code in the response with its size."""
    return SIZE_BYTES + CORRELATION_BYTES + THROTTLE_BYTES + 4 + 2 + len(topic) + 4 + 4


def offset_fetch(group: str, topic: str, partition: int) -> bytes:
    body = text(group) + array([text(topic) + struct.pack(">ii", 1, partition)])
    return request(9, 5, body, flexible=False)


def offset_fetch_error(answer: bytes) -> int:
    """The error code of the group, at the end of the response."""
    return int(struct.unpack_from(">h", answer, len(answer) - 2)[0])


def error_of(answer: bytes) -> int:
    """The error code after the throttle time, its place in most responses (without their size)."""
    return int(struct.unpack_from(">h", answer, CORRELATION_BYTES + THROTTLE_BYTES)[0])


@dataclass(frozen=True, slots=True)
class Joined:
    """A response to `join`; only the leader gets `members`."""

    error: int
    generation: int
    member_id: str
    members: list[str]


def joined(answer: bytes, version: int = 5) -> Joined:
    position = CORRELATION_BYTES + THROTTLE_BYTES
    error, generation = struct.unpack_from(">hi", answer, position)
    position += 6
    texts = []
    for _ in range(3):  # protocol, leader, member
        found, position = _text(answer, position)
        texts.append(found)
    (count,) = struct.unpack_from(">i", answer, position)
    position += 4
    members = []
    for _ in range(count):
        found, position = _text(answer, position)
        members.append(found)
        if version >= 5:
            _, position = _text(answer, position)
        position += 4 + struct.unpack_from(">i", answer, position)[0]
    return Joined(error, generation, texts[2], members)


def synced(answer: bytes) -> bytes:
    """The assignment in a response to `sync` without an error."""
    start = CORRELATION_BYTES + THROTTLE_BYTES + 2
    (size,) = struct.unpack_from(">i", answer, start)
    return answer[start + 4 : start + 4 + size]


def _text(data: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, position)
    position += 2
    return data[position : position + max(size, 0)].decode(), position + max(size, 0)

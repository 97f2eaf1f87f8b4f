"""Rows of `bench.stalls` about groups: offsets fetched at once, 50,000 groups, a rebalance of 500 members.

In: a stage. Out: rows, after a call of `register`. Builds frames with `struct` only.
Does not know: how waits are measured.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench import frames, group_frames
from bench.brokers import create_topics, delete_topics
from bench.generator import LoadError

if TYPE_CHECKING:
    from bench.stalls import Disturb, Stage

PROBE_TOPIC = "probe"  # topic of the measured producer
RESPONSE_TIMEOUT_S = 120.0
WIDE_GROUP = "wide"
COMMITS_AT_ONCE = 500
LOAD_IDLE_S = 1.0
REST_S = 0.0003
PRODUCE_ERROR_BYTES = 2
MEMBERS, SHARED_TOPIC, SHARED_PARTITIONS = 500, "shared", 5_000
ROUNDS, ROUND_S = 5, 1.1  # a new target once a second
NO_TIMEOUT = -1
JOINING = 0

Assigned = dict[bytes, tuple[int, ...]]


def register(row: Callable[[str], Callable[[Disturb], Disturb]]) -> None:
    """Register these functions as rows, ordered so that rows can share their groups."""
    row("stall-fetch-offsets")(fetch_all)
    row("stall-groups")(many_commit)
    row("stall-groups-topic")(topic_beside_groups)
    row("stall-groups-list")(list_all)
    row("stall-groups-load")(load)
    row("stall-rebalance")(rebalance)


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), RESPONSE_TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def exchange(connection: socket.socket, requests: Sequence[bytes]) -> list[bytes]:
    """Send requests in one piece; return their responses."""
    connection.sendall(b"".join(requests))
    stream = connection.makefile("rb")
    return [stream.read(struct.unpack(">i", stream.read(4))[0]) for _ in requests]


def need_coordinator(stage: Stage) -> None:
    stage.ask(group_frames.find_coordinator("any"))
    deadline = time.monotonic() + RESPONSE_TIMEOUT_S
    while group_frames.offset_fetch_error(stage.ask(group_frames.offset_fetch("any", PROBE_TOPIC, 0))):
        if time.monotonic() > deadline:
            raise LoadError("groups have no coordinator")
        time.sleep(0.05)


def commit_many(stage: Stage, offset: int) -> None:
    """Let each group commit an offset."""
    with connected(stage.broker.port) as connection:
        for start in range(0, stage.groups, COMMITS_AT_ONCE):
            numbers = range(start, min(start + COMMITS_AT_ONCE, stage.groups))
            names = [f"one-of-many-{number:05}" for number in numbers]
            requests = [group_frames.commit(name, PROBE_TOPIC, offset) for name in names]
            error_at = group_frames.commit_error_at(PROBE_TOPIC) - frames.SIZE_BYTES
            for response in exchange(connection, requests):
                if error := struct.unpack_from(">h", response, error_at)[0]:
                    raise LoadError(f"a group's offset was refused with error {error}")


def fetch_all(stage: Stage) -> None:
    """Fetch all offsets of a group that has one for each partition."""
    from bench.stalls import commit_all

    stage.need_topics()
    need_coordinator(stage)
    stage.ask(commit_all(WIDE_GROUP, stage.topics))
    frame = frames.request(9, 5, group_frames.text(WIDE_GROUP) + struct.pack(">i", -1), flexible=False)
    with stage.watched():
        response = stage.ask(frame)
    if group_frames.offset_fetch_error(response):
        raise LoadError("the offsets could not be fetched")


def many_commit(stage: Stage) -> None:
    need_coordinator(stage)
    with stage.watched():
        commit_many(stage, 1)


def topic_beside_groups(stage: Stage) -> None:
    need_coordinator(stage)
    commit_many(stage, 2)
    with stage.watched():
        create_topics(stage.broker, {"beside-groups": 1})
        delete_topics(stage.broker, "beside-groups")


def list_all(stage: Stage) -> None:
    need_coordinator(stage)
    commit_many(stage, 3)
    with stage.watched():
        response = stage.ask(frames.request(16, 2, b"", flexible=False))
    at = frames.CORRELATION_BYTES + 4
    error, count = struct.unpack_from(">hi", response, at)
    if error or count < stage.groups:
        raise LoadError(f"{count} groups were listed, with error {error}")


def load(stage: Stage) -> None:
    """Restart the broker; the producer starts as soon as the broker responds."""
    need_coordinator(stage)
    commit_many(stage, 4)
    stage.broker.stop()
    stage.broker.start()
    began = time.monotonic()
    waits, loaded = waits_while_loading(stage)
    beside = [seconds for at, seconds in waits if at <= loaded]
    idle = [seconds for at, seconds in waits if at > loaded]
    stage.measured = stage.judged(idle, beside or idle, began, loaded)


def waits_while_loading(stage: Stage) -> tuple[list[tuple[float, float]], float]:
    """The start and duration of each produce request, and the time when the groups were loaded."""
    produce = frames.produce(PROBE_TOPIC, frames.batch_of(1), 1)
    fetch = group_frames.offset_fetch("one-of-many-00000", PROBE_TOPIC, 0)
    waits: list[tuple[float, float]] = []
    loaded = 0.0
    deadline = time.monotonic() + RESPONSE_TIMEOUT_S
    with connected(stage.broker.port) as connection, connected(stage.broker.port) as asking:
        while not loaded or time.monotonic() < loaded + LOAD_IDLE_S:
            began = time.monotonic()
            if began > deadline:
                raise LoadError("the groups are not loaded")
            [response] = exchange(connection, [produce.frames])
            error_at = produce.error_at - frames.SIZE_BYTES
            if response[error_at : error_at + PRODUCE_ERROR_BYTES] == b"\0\0":
                waits.append((began, time.monotonic() - began))
            if not loaded and not group_frames.offset_fetch_error(exchange(asking, [fetch])[0]):
                loaded = time.monotonic()
            time.sleep(REST_S)
    return waits, loaded


# -- a rebalance of the consumer protocol ----------------------------------------------------------------


def rebalance(stage: Stage) -> None:
    """Let members join, and change their target assignment every second; they revoke and adopt partitions."""
    create_topics(stage.broker, {SHARED_TOPIC: SHARED_PARTITIONS})
    need_coordinator(stage)
    epochs = dict.fromkeys((f"member-{number:04}" for number in range(MEMBERS)), JOINING)
    owned: dict[str, Assigned] = {}
    with connected(stage.broker.port) as connection, stage.watched():
        for _ in range(ROUNDS):
            requests = [heartbeat(name, epoch, owned.get(name)) for name, epoch in epochs.items()]
            responses = exchange(connection, requests)
            for name, response in zip(list(epochs), responses, strict=True):
                epochs[name], assigned = heard(response)
                if assigned is not None:
                    owned[name] = assigned
            time.sleep(ROUND_S)
    delete_topics(stage.broker, SHARED_TOPIC)
    held = sum(len(partitions) for assigned in owned.values() for partitions in assigned.values())
    if held != SHARED_PARTITIONS:
        raise LoadError(f"{held} of {SHARED_PARTITIONS} partitions are assigned")


def compact(value: str) -> bytes:
    return frames.unsigned_varint(len(value) + 1) + value.encode()


def heartbeat(member_id: str, epoch: int, owned: Assigned | None) -> bytes:
    """ConsumerGroupHeartbeat version 0: all fields when joining, then the partitions that the member owns."""
    body = compact("rebalancing") + compact(member_id) + struct.pack(">i", epoch) + b"\0\0"
    if epoch == JOINING:
        names = frames.unsigned_varint(2) + compact(SHARED_TOPIC)
        body += struct.pack(">i", 60_000) + names + b"\0" + b"\1"
    else:
        body += struct.pack(">i", NO_TIMEOUT) + b"\0\0" + frames.unsigned_varint(len(owned or ()) + 1)
        for topic_id, partitions in (owned or {}).items():
            body += topic_id + frames.unsigned_varint(len(partitions) + 1)
            body += struct.pack(f">{len(partitions)}i", *partitions) + b"\0"
    return frames.request(68, 0, body + b"\0", flexible=True)


def heard(response: bytes) -> tuple[int, Assigned | None]:
    """The member's epoch and, if the response has one, its assignment."""
    position = frames.CORRELATION_BYTES + 1 + 4  # tags, throttle time
    (error,) = struct.unpack_from(">h", response, position)
    if error:
        raise LoadError(f"a heartbeat was refused with error {error}")
    position += 2
    for _ in range(2):  # the error's text, the member's id
        size, position = varint_at(response, position)
        position += max(size - 1, 0)
    epoch, _, is_there = struct.unpack_from(">iib", response, position)
    position += 9
    if is_there < 0:
        return epoch, None
    assigned: Assigned = {}
    count, position = varint_at(response, position)
    for _ in range(count - 1):
        topic_id, position = response[position : position + 16], position + 16
        size, position = varint_at(response, position)
        assigned[topic_id] = struct.unpack_from(f">{size - 1}i", response, position)
        position += 4 * (size - 1) + 1
    return epoch, assigned


def varint_at(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7

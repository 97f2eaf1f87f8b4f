"""The row of `bench.stalls` about one consumer of all partitions: it opens a session, fetches, and waits.

In: a stage. Out: the row, after a call of `register`. Builds frames with `struct` only.
Does not know: how waits are measured.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench import frames, group_frames
from bench.generator import LoadError
from bench.group_stalls import connected, exchange

if TYPE_CHECKING:
    from bench.stalls import Disturb, Stage

FETCH, ERROR_AT = 1, frames.CORRELATION_BYTES + 4  # behind the throttle time
NO_SESSION, FIRST_EPOCH = 0, 0
RESPONSE_BYTES_MAX, PARTITION_BYTES_MAX = 52_428_800, 1_048_576  # defaults of a Java consumer
AGAIN = 3  # fetches of the same records
IDLE_FETCHES, IDLE_MS = 3, 100


def register(row: Callable[[str], Callable[[Disturb], Disturb]]) -> None:
    row("stall-fetch")(fetch_all)


def fetch_all(stage: Stage) -> None:
    """Open a session with all partitions, fetch a record of each several times, then wait for more."""
    from bench.stalls import check_produced, produce_to_all

    stage.need_topics()
    check_produced(stage.ask(produce_to_all(stage.topics)), stage.topics)
    ends = end_offsets(stage)
    oldest = dict.fromkeys(ends, 0)
    with connected(stage.broker.port) as connection, stage.watched():
        [first] = exchange(connection, [fetch(NO_SESSION, FIRST_EPOCH, oldest)])
        session_id = check_fetched(first, len(ends) * frames.VALUE_BYTES)
        epoch = FIRST_EPOCH
        for _ in range(AGAIN):
            epoch += 1
            [response] = exchange(connection, [fetch(session_id, epoch, {})])
            check_fetched(response, len(ends) * frames.VALUE_BYTES)
        named = ends
        for _ in range(IDLE_FETCHES):
            epoch += 1
            [response] = exchange(connection, [fetch(session_id, epoch, named, wait_ms=IDLE_MS)])
            check_fetched(response, 0)
            named = {}


def end_offsets(stage: Stage) -> dict[tuple[str, int], int]:
    response = stage.ask(frames.list_offsets(stage.topics))
    position = frames.CORRELATION_BYTES + 4 + 4
    found = {}
    for topic, partitions in stage.topics.items():
        position += 2 + len(topic) + 4
        for _ in range(partitions):
            index, error, _, offset, _ = frames.LIST_OFFSETS_PARTITION.unpack_from(response, position)
            if error:
                raise LoadError(f"the end of {topic}-{index} was refused with error {error}")
            found[topic, index] = offset
            position += frames.LIST_OFFSETS_PARTITION.size
    return found


def fetch(session_id: int, epoch: int, offsets: dict[tuple[str, int], int], *, wait_ms: int = 500) -> bytes:
    """A fetch within a session that names these partitions."""
    topics: dict[str, list[bytes]] = {}
    for (topic, index), offset in offsets.items():
        wanted = struct.pack(">iiqqi", index, -1, offset, -1, PARTITION_BYTES_MAX)
        topics.setdefault(topic, []).append(wanted)
    named = [group_frames.text(topic) + group_frames.array(wanted) for topic, wanted in topics.items()]
    body = (
        struct.pack(">iiiibii", -1, wait_ms, 1, RESPONSE_BYTES_MAX, 0, session_id, epoch)
        + group_frames.array(named)
        + struct.pack(">i", 0)
        + group_frames.text("")
    )
    return frames.request(FETCH, frames.FETCH_VERSION, body, flexible=False)


def check_fetched(response: bytes, bytes_min: int) -> int:
    """The session's id."""
    error, session_id = struct.unpack_from(">hi", response, ERROR_AT)
    if error or len(response) < bytes_min:
        raise LoadError(f"a fetch had error {error} and {len(response)} bytes")
    found: int = session_id
    return found

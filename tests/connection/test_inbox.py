"""The inbox returns whole frames in order, however the network has split them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.connection.arena import ARENA_BYTES, FREE_BYTES_MAX, READ_BYTES_MAX, Arena
from barnabas.connection.inbox import Inbox
from barnabas.protocol import ProtocolError

FRAME_BYTES_MAX = 1 << 20


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Reader:
    """Feeds an inbox as a transport would, and handles every frame at once, or only when allowed to."""

    def __init__(self, arena: Arena) -> None:
        self.inbox = Inbox(arena, FRAME_BYTES_MAX)
        self.frames: list[bytes] = []
        self.is_busy = False
        self.holds_references = False

    def feed(self, data: bytes, chunk: int) -> None:
        while data:
            room = self.inbox.buffer()
            count = min(chunk, len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            run = self.inbox.received(count)
            if run is not None:
                self.take(run)

    def take(self, run: memoryview) -> None:
        position = 0
        while not self.is_busy and (stop := self.inbox.frame_end(run, position, len(run))):
            self.frames.append(bytes(run[position + 4 : stop]))
            position = stop
        self.inbox.consume(run, position, referenced=self.holds_references)


bodies = st.lists(
    st.one_of(
        st.binary(min_size=8, max_size=200),
        st.integers(8, 3 * READ_BYTES_MAX).map(lambda size: bytes([size % 251]) * size),
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=60)
@given(bodies, st.integers(1, 2 * READ_BYTES_MAX))
def test_frames_survive_any_chunking(given_bodies: list[bytes], chunk: int) -> None:
    reader = Reader(Arena())
    total = sum(map(len, given_bodies))
    reader.feed(b"".join(map(frame, given_bodies)), max(chunk, total // 300))
    assert reader.frames == given_bodies


@settings(deadline=None, max_examples=40)
@given(bodies, st.integers(1, 5000))
def test_bytes_that_arrive_while_busy_are_kept(given_bodies: list[bytes], chunk: int) -> None:
    reader = Reader(Arena())
    small = [body for body in given_bodies if len(body) < 5000]
    reader.is_busy = True
    reader.feed(b"".join(map(frame, small)), chunk)
    assert reader.frames == []
    reader.is_busy = False
    while (run := reader.inbox.pop_waiting()) is not None:
        before = len(reader.frames)
        reader.take(run)
        if len(reader.frames) == before:
            break
    assert reader.frames == small


def test_a_busy_connection_says_when_reading_should_pause() -> None:
    reader = Reader(Arena())
    reader.is_busy = True
    reader.feed(frame(b"x" * 100) * 10, 4096)
    assert not reader.inbox.is_full
    reader.feed(frame(b"x" * 1000) * 150, 4096)
    assert reader.inbox.is_full


def test_two_connections_share_the_memory_without_mixing_their_bytes() -> None:
    arena = Arena()
    left, right = Reader(arena), Reader(arena)
    for position in range(0, 60, 3):
        left.feed(frame(b"left" * 20)[position : position + 3], 3)
        right.feed(frame(b"right" * 20)[position : position + 3], 3)
    left.feed(frame(b"left" * 20)[60:], 100)
    right.feed(frame(b"right" * 20)[60:], 100)
    assert left.frames == [b"left" * 20]
    assert right.frames == [b"right" * 20]


def test_memory_that_is_referenced_is_not_written_again_until_released() -> None:
    arena = Arena()
    reader = Reader(arena)
    reader.holds_references = True
    reader.feed(frame(b"first-01"), 100)
    kept = arena.view[4:12]
    reader.feed(frame(b"second-2"), 100)
    assert bytes(kept) == b"first-01"
    arena.release()
    reader.feed(frame(b"third--3"), 100)
    assert bytes(kept) == b"third--3"


@pytest.mark.parametrize("size", [-1, 0, 7, FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_sizes_out_of_bounds_are_refused(size: int) -> None:
    reader = Reader(Arena())
    with pytest.raises(ProtocolError, match="allowed are 8 to"):
        reader.feed(size.to_bytes(4, "big", signed=True) + b"x" * 20, 100)


def test_large_buffers_are_used_again_and_not_hoarded() -> None:
    arena = Arena()
    first = arena.borrow(300_000)
    arena.return_buffer(first, referenced=False)
    assert arena.borrow(400_000) is first
    arena.return_buffer(first, referenced=True)
    assert arena.borrow(400_000) is not first
    arena.release()
    assert arena.borrow(400_000) is first
    for _ in range(3):
        arena.return_buffer(arena.borrow(FREE_BYTES_MAX), referenced=False)
    assert arena.bytes_large >= 0
    assert len(arena.view) == ARENA_BYTES


def test_large_frames_wait_while_others_hold_the_memory_there_is() -> None:
    arena = Arena(large_bytes_max=200_000)
    first, second = Reader(arena), Reader(arena)
    body = b"x" * 150_000
    first.feed(frame(body)[:1000], 1000)
    resumed: list[bool] = []
    second.feed(frame(body)[:1000], 1000)
    assert second.inbox.waits_for_memory
    arena.wait_for_room(lambda: resumed.append(True))
    first.feed(frame(body)[1000:], 1 << 20)
    assert first.frames == [body]
    assert resumed == [True]
    second.feed(frame(body)[1000:], 1 << 20)
    assert second.frames == [body]

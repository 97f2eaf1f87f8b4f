"""Received bytes become frames, however they are cut."""

from __future__ import annotations

import random
import struct

import pytest

from barnabas.client.core.frames import FRAME_BYTES_MAX, READ_BYTES, FrameBuffer
from barnabas.protocol import ProtocolError

KEPT = 64 * 1024


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def received(buffer: FrameBuffer, data: bytes, sizes: list[int] | None = None) -> list[bytes]:
    """Everything that comes out when data arrives in pieces of these sizes, or in as large ones as fit."""
    found = []
    while data:
        room = buffer.room()
        assert len(room), "a buffer always has room"
        count = min(len(room), len(data), sizes.pop(0) if sizes else len(data))
        room[:count] = data[:count]
        buffer.received(count)
        data = data[count:]
        while (frame := buffer.next_frame()) is not None:
            found.append(bytes(frame))
    return found


def test_frames_are_found_whatever_their_pieces() -> None:
    rng = random.Random(7)
    for _ in range(200):
        bodies = [rng.randbytes(rng.choice([4, 5, 100, READ_BYTES, 3 * READ_BYTES])) for _ in range(6)]
        sizes = [rng.choice([1, 3, 5, 1000, 20_000]) for _ in range(rng.randrange(50))]
        assert received(FrameBuffer(KEPT), b"".join(map(framed, bodies)), sizes) == bodies


def test_a_large_frame_is_received_up_to_its_end_and_no_further() -> None:
    buffer = FrameBuffer(KEPT)
    received(buffer, framed(bytes(KEPT - 100)))
    assert received(buffer, framed(bytes(1_000))[:100]) == []
    assert len(buffer.room()) == 1_000 + 4 - 100
    received(buffer, bytes(904))
    assert received(buffer, framed(bytes(10 * READ_BYTES))[:100]) == []
    assert len(buffer.room()) == 10 * READ_BYTES + 4 - 100


def test_memory_that_grew_is_given_back() -> None:
    buffer = FrameBuffer(KEPT)
    received(buffer, framed(bytes(10 * KEPT)))
    assert len(buffer.room()) == READ_BYTES


def test_memory_that_is_used_again_and_again_is_kept() -> None:
    buffer = FrameBuffer(KEPT)
    received(buffer, framed(bytes(KEPT - 100)))
    assert len(buffer.room()) > READ_BYTES


@pytest.mark.parametrize("length", [-1, 0, 3, FRAME_BYTES_MAX + 1, 0x48545450])
def test_a_length_that_cannot_be_one_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match=f"a frame of {length} bytes"):
        received(FrameBuffer(KEPT), struct.pack(">i", length) + b"....")

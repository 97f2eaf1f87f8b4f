"""Channels share the memory that requests land in: a request is handled to its end before another's."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from barnabas.broker.produce.tick import Tick
from barnabas.broker.wire.channel import REQUESTS_A_TURN, Channel
from barnabas.connection.arena import Arena


class Talking(Channel):
    """Notes its requests, and does something at the first."""

    def __init__(self, listener: Any) -> None:
        super().__init__(listener, "127.0.0.1")
        self.seen: list[bytes] = []
        self.at_first: Callable[[], None] = lambda: None

    def _request(self, frame: memoryview) -> None:
        self.seen.append(bytes(frame))
        if len(self.seen) == 1:
            self.at_first()

    def receive(self, data: bytes) -> None:
        self.get_buffer(len(data))[: len(data)] = data
        self.buffer_updated(len(data))


def frames(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def test_a_channel_unblocked_by_another_channels_request_runs_after_it() -> None:
    later: list[Callable[[], None]] = []
    loop = SimpleNamespace(time=lambda: 0.0, call_soon=later.append)
    tick = Tick(Arena(), later.append, lambda due, done: None)
    listener = SimpleNamespace(
        tick=tick,
        router=SimpleNamespace(routes={}),
        broker=SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 0), partitions=None, access=None),
        loop=loop,
        frame_bytes_max=1000,
        name="PLAINTEXT",
    )
    producer, follower = Talking(listener), Talking(listener)
    producer.block_requests()  # too many of its answers wait for the follower
    producer.receive(frames(b"producer-1", b"producer-2", b"producer-3"))
    follower.at_first = producer.unblock_requests  # it has what the producer waits for
    follower.receive(frames(b"follower-1", b"follower-2"))
    for call in later:
        call()
    assert follower.seen == [b"follower-1", b"follower-2"]
    assert producer.seen == [b"producer-1", b"producer-2", b"producer-3"]


def test_many_small_requests_of_one_connection_take_turns_with_others() -> None:
    later: list[Callable[[], None]] = []
    handled: list[str] = []
    route = SimpleNamespace(
        layout=None,
        flexible_request=False,
        flexible_response=False,
        has_many_elements=True,
        key=12,
        version=0,
        decode=lambda frame, position: (None, position),
        handler=lambda request, context: handled.append(context.client_id),
        times=SimpleNamespace(observe=lambda took: None),
    )
    listener: Any = SimpleNamespace(
        tick=Tick(Arena(), later.append, lambda due, done: None),
        router=SimpleNamespace(routes={12 << 16: route}),
        broker=SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 0), partitions=None, access=None),
        loop=SimpleNamespace(time=lambda: 0.0, call_soon=later.append),
        frame_bytes_max=1000,
        name="PLAINTEXT",
    )

    def request(client: bytes) -> bytes:
        return b"\0\x0c\0\0\0\0\0\1" + len(client).to_bytes(2, "big") + client

    def receive(channel: Channel, data: bytes) -> None:
        channel.get_buffer(len(data))[: len(data)] = data
        channel.buffer_updated(len(data))

    busy, other = Channel(listener, "127.0.0.1"), Channel(listener, "127.0.0.1")
    receive(busy, frames(*[request(b"busy")] * (2 * REQUESTS_A_TURN + 1)))
    assert handled == ["busy"] * REQUESTS_A_TURN
    receive(other, frames(request(b"other")))
    assert handled[REQUESTS_A_TURN:] == ["other"]
    while later:
        later.pop(0)()
    assert handled[REQUESTS_A_TURN + 1 :] == ["busy"] * (REQUESTS_A_TURN + 1)

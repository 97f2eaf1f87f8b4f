"""Slow readers, half frames, floods, idlers: memory and limits hold, the honest client never notices."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import psutil
import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation
from broker.conversation import batch as batch_of
from broker.conversation import produce as produce_to
from interop.frames import Closed, Wire, framed, request
from interop.requests import batch, fetch, produce
from interop.talk import Talk, encode

from .conftest import MIB, Starter, honest_work, resident_bytes

API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)


def answers(connection: socket.socket, timeout: float = 10.0) -> bool:
    """Whether the broker answers on this connection; False when it is closed."""
    connection.settimeout(timeout)
    try:
        connection.sendall(framed(API_VERSIONS))
        return len(connection.recv(1 << 16)) > 4
    except (ConnectionError, TimeoutError):
        return False


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10)


def test_readers_that_never_read_cost_bounded_memory(ours: Broker) -> None:
    ours.create_topic("large")
    with contextlib.ExitStack() as stack:
        talk = stack.enter_context(contextlib.closing(Talk(ours.port, "slow")))
        for _ in range(20):
            answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, "large", batch(b"x" * 900_000)))
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE"
        body = encode(ApiKey.FETCH, 12, fetch(talk, {"large": [{"partition_max_bytes": 20_000_000}]}))
        ask = framed(request(ApiKey.FETCH, 12, 2, 1, body))
        with honest_work(ours.port, "honest"):
            before = resident_bytes(ours.pid)
            for _ in range(40):
                connection = stack.enter_context(connect(ours.port))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.setblocking(False)
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    for _ in range(50):
                        connection.send(ask)
            assert answers(stack.enter_context(connect(ours.port)))
            after = resident_bytes(ours.pid)

    # 40 readers asked for 50 times 18 MB each: 36 GB, were they all held.
    assert after - before < 128 * MIB, f"{(after - before) / MIB:.0f} MiB more than before"


def test_frames_that_are_announced_and_never_come_cost_nothing(ours: Broker) -> None:
    with contextlib.ExitStack() as stack, honest_work(ours.port, "honest"):
        before = resident_bytes(ours.pid)
        for _ in range(300):
            connection = stack.enter_context(connect(ours.port))
            connection.sendall(struct.pack(">i", 100_000_000) + API_VERSIONS)
        assert answers(stack.enter_context(connect(ours.port)))
        after = resident_bytes(ours.pid)

    # 300 frames of 100 MB: 30 GB, were they believed.
    assert after - before < 64 * MIB, f"{(after - before) / MIB:.0f} MiB more than before"


def test_producers_that_send_more_than_the_receive_memory_and_go_do_not_end_the_broker(ours: Broker) -> None:
    """Responses leave while further requests are read, and find a connection that was reset."""
    ours.create_topic("large")
    with honest_work(ours.port, "honest"):
        for n in range(60):
            with Conversation(ours) as talk:
                talk.send(*(produce_to("large", batch_of(b"v" * 100_000), acks=-1) for _ in range(20)))
                if n % 2:
                    talk.receive()  # the others are lost with the connection


def test_half_open_connections_do_not_disturb(ours: Broker) -> None:
    with contextlib.ExitStack() as stack, honest_work(ours.port, "honest"):
        for n in range(300):
            connection = stack.enter_context(connect(ours.port))
            connection.sendall(framed(API_VERSIONS)[: n % 13])
        assert answers(stack.enter_context(connect(ours.port)))


def test_connections_that_come_and_go_leave_nothing_behind(ours: Broker) -> None:
    process = psutil.Process(ours.pid)
    with honest_work(ours.port, "honest"):
        for _ in range(200):
            connect(ours.port).close()
        settled = process.num_fds()
        for n in range(1_000):
            connection = connect(ours.port)
            if n % 3 == 0:
                connection.sendall(framed(API_VERSIONS))
            if n % 5 == 0:  # reset instead of an orderly end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        wait_until(lambda: process.num_fds() <= settled + 20)


def test_connections_beyond_the_limit_wait_for_a_place(start: Starter) -> None:
    with start(max_connections="20") as broker, contextlib.ExitStack() as stack:
        places = fill(stack, broker.port, 20)
        late = stack.enter_context(connect(broker.port))
        assert not answers(late, timeout=1.0)

        places[0].close()
        late.settimeout(20)
        assert len(late.recv(1 << 16)) > 4, "the answer comes once there is a place"


def test_connections_of_one_address_beyond_its_limit_are_closed(start: Starter) -> None:
    with start(max_connections_per_ip="10") as broker, contextlib.ExitStack() as stack:
        places = fill(stack, broker.port, 10)
        for _ in range(5):
            with connect(broker.port) as late:
                late.settimeout(20)
                with contextlib.suppress(ConnectionError):
                    late.sendall(framed(API_VERSIONS))
                    assert late.recv(1 << 16) == b""
        assert all(answers(place) for place in places)

        places[0].close()
        wait_until(lambda: answers(stack.enter_context(connect(broker.port))))


def fill(stack: contextlib.ExitStack, port: int, count: int) -> list[socket.socket]:
    """As many answered connections; the probe of the start may still hold a place for a moment."""
    places: list[socket.socket] = []
    deadline = time.monotonic() + 30
    while len(places) < count:
        assert time.monotonic() < deadline, f"only {len(places)} connections were served"
        connection = stack.enter_context(connect(port))
        if answers(connection, timeout=2.0):
            places.append(connection)
        else:
            connection.close()
    return places


def test_idle_connections_are_closed_and_busy_ones_are_not(start: Starter) -> None:
    with start(connections_max_idle_ms="1500") as broker, contextlib.ExitStack() as stack:
        idle, busy = (stack.enter_context(connect(broker.port)) for _ in range(2))
        assert answers(idle) and answers(busy)
        idle.settimeout(0.05)
        deadline = time.monotonic() + 30
        while True:
            assert answers(busy), "a busy connection was closed"
            try:
                assert idle.recv(1) == b""
                break
            except ConnectionError:
                break
            except TimeoutError:
                assert time.monotonic() < deadline, "an idle connection is still open"


def test_a_request_over_the_limit_closes_the_connection(start: Starter) -> None:
    with start(socket_request_max_bytes="1000000") as broker:
        with Wire(broker.port) as wire, pytest.raises(Closed):
            wire.send_bytes(struct.pack(">i", 1_000_001) + API_VERSIONS)
            wire.receive()
        with connect(broker.port) as connection:
            assert answers(connection)


def test_five_hundred_fetches_wait_and_all_are_answered(ours: Broker) -> None:
    ours.create_topic("news")
    with contextlib.ExitStack() as stack:
        talk = stack.enter_context(contextlib.closing(Talk(ours.port, "news")))
        body = encode(ApiKey.FETCH, 12, fetch(talk, {"news": [{}]}, max_wait_ms=60_000, min_bytes=1))
        readers = [stack.enter_context(Wire(ours.port)) for _ in range(500)]
        for reader in readers:
            reader.send(ApiKey.FETCH, 12, 2, body)
        assert answers(stack.enter_context(connect(ours.port)))
        for reader in readers[:100]:
            reader.close()  # those that gave up must not be in the way

        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, "news", batch(b"extra, extra")))

        assert all(b"extra, extra" in reader.receive() for reader in readers[100:])

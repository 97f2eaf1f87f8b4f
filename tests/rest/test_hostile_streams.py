"""Streams that are slow, endless, cut off or never read do not disturb others, and cost bounded memory."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from barnabas.rest.proxy import ProxySettings
from barnabas.services.hosting.connections import BoundedWebSocket
from barnabas.services.limits import Limits
from barnabas.testing.waiting import wait_until
from rest.serving import HTTP, Served, serving

RECORD = json.dumps({"partition_id": 0, "value": {"type": "STRING", "data": "x" * 100}}).encode()
SMALL_BUFFER = 8 * 1024
DEADLINE_S = 30


@pytest.fixture(scope="module")
def small(broker: str) -> Iterator[Served]:
    """A proxy with small buffers. A reader that takes nothing for a second is dropped."""
    settings = ProxySettings(
        record_chars_max=20_000,
        stream_in_flight_max=50,
        stream_in_flight_bytes_max=20_000,
        tail_fetch_bytes_max=10_000,
    )
    with serving(broker, settings, Limits(stall_s_max=1.0), socket_bytes=SMALL_BUFFER) as served:
        HTTP.post(f"{served.cluster}/topics", json={"topic_name": "t", "partitions_count": 1})
        yield served


def opened(served: Served, request: str) -> socket.socket:
    found = socket.socket()
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        found.setsockopt(socket.SOL_SOCKET, option, SMALL_BUFFER)
    found.settimeout(DEADLINE_S)
    found.connect(("127.0.0.1", served.port))
    found.sendall(request.encode())
    return found


def produce_stream(served: Served) -> socket.socket:
    return opened(
        served,
        f"POST /v3/clusters/{served.cluster_id}/topics/t/records HTTP/1.1\r\nHost: x\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    )


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def answer(served: Served) -> int:
    """The offset of a record that an ordinary client produces."""
    response = HTTP.post(
        f"{served.cluster}/topics/t/records", content=RECORD, headers={"content-type": "application/json"}
    )
    return int(response.json()["offset"])


def test_many_streams_that_never_finish_an_object_disturb_nobody(small: Served) -> None:
    streams = [produce_stream(small) for _ in range(50)]
    for stream in streams:
        stream.sendall(chunk(RECORD[:20]))
    first = answer(small)
    assert answer(small) == first + 1
    for stream in streams:
        stream.close()
    assert answer(small) == first + 2


def test_an_object_without_end_is_refused(small: Served) -> None:
    stream = produce_stream(small)
    stream.sendall(chunk(b'{"value":{"type":"STRING","data":"'))
    received = b""
    while b"413" not in received:
        try:
            stream.sendall(chunk(b"x" * 5_000))
        except OSError:
            pass  # the proxy closed the connection
        received += stream.recv(65536) if b"413" not in received and has_data(stream) else b""
    assert b'"error_code":413' in received
    stream.close()


def has_data(stream: socket.socket) -> bool:
    stream.setblocking(False)
    try:
        return bool(stream.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        stream.settimeout(DEADLINE_S)


def test_a_connection_that_is_cut_in_an_object_is_forgotten(small: Served) -> None:
    stream = produce_stream(small)
    stream.sendall(chunk(RECORD + RECORD[:30]))
    stream.shutdown(socket.SHUT_WR)
    while stream.recv(65536):
        pass
    stream.close()
    assert answer(small) > 0


def test_a_sender_that_reads_no_answers_is_held_back_and_dropped(small: Served) -> None:
    begin = answer(small)
    stream = produce_stream(small)
    sent = 0
    data = chunk(RECORD * 20)
    with pytest.raises(OSError):  # the connection is closed, and not everything was taken before
        while sent < 200_000:
            stream.sendall(data)
            sent += 20
    stream.close()
    assert sent < 200_000
    # Records in flight, and those whose requests or answers lie in the buffers of sockets.
    assert answer(small) - begin < 5_000


def test_a_tail_that_is_not_read_is_held_back_and_dropped(small: Served) -> None:
    content = RECORD * 3_000
    url = f"{small.cluster}/topics/t/records"
    HTTP.post(url, content=content, headers={"content-type": "application/json"})
    stream = opened(small, "GET /topics/t/tail?from=beginning HTTP/1.1\r\nHost: x\r\n\r\n")
    wait_for_tails(small, 1)
    assert answer(small) > 0
    wait_for_tails(small, 0)
    stream.close()


def test_a_web_socket_that_is_not_read_is_closed(small: Served) -> None:
    request = (
        "GET /topics/t/tail?from=beginning HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    stream = opened(small, request)
    assert stream.recv(12) == b"HTTP/1.1 101"
    assert web_sockets(small) == 1
    wait_for_tails(small, 0)
    wait_until(lambda: web_sockets(small) == 0, DEADLINE_S)  # although the client has not read everything
    stream.close()


def web_sockets(served: Served) -> int:
    return sum(isinstance(each, BoundedWebSocket) for each in served.connections)


def test_a_slow_tail_gets_every_record_in_order(small: Served) -> None:
    request = "GET /topics/t/tail?from=0&limit=1000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    stream = opened(small, request)
    received = b""
    while data := stream.recv(2_000):
        received += data
    offsets = [
        json.loads(line.removeprefix(b"data: "))["offset"]
        for line in received.splitlines()
        if line.startswith(b"data: ") and line.endswith(b"}")
    ]
    assert offsets == sorted(offsets)
    assert len(offsets) > 900  # the marks of chunks cut a few lines
    stream.close()


def wait_for_tails(served: Served, count: int) -> None:
    wait_until(lambda: served.proxy.tails == count, DEADLINE_S)

"""Peers that fail their TLS handshake are closed with a clear log line, and nobody else waits for them."""

from __future__ import annotations

import logging
import random
import re
import socket
import ssl
import struct
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from barnabas.broker.wire import listener_tls
from barnabas.client.admin.admin import Admin
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import Address
from barnabas.security.clients.client_security import ClientSecurity
from barnabas.security.tls.certificates import Issued, issue
from barnabas.security.tls.transport import TlsTransport
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .tls_world import NOW, TlsBroker, certificates

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
SECONDS = 20


@pytest.fixture(scope="module")
def broker() -> Iterator[TlsBroker]:
    with TlsBroker(ssl_client_auth="required") as found:
        yield found


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Waits until the log has a line with this text."""
    monkeypatch.setattr(listener_tls, "FAILURES_TOLD_EVERY_S", 0.0)
    caplog.set_level(logging.INFO)

    def wait(text: str) -> None:
        wait_until(lambda: text in caplog.text, what=lambda: f"{text!r} in the log:\n{caplog.text}")

    return wait


def context(issued: Issued | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=certificates().ca_file)
    if issued is not None:
        made.load_cert_chain(certificates().store("client.pem", issued))
    return made


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS)


def serves(broker: TlsBroker) -> None:
    """A client that does everything right is served."""
    right = context()
    right.load_cert_chain(certificates().alice_file)
    with (
        connected(broker.port) as plain,
        right.wrap_socket(plain, server_hostname="localhost") as talk,
    ):
        talk.sendall(API_VERSIONS)
        assert talk.recv(4096)


def is_closed(plain: socket.socket) -> bool:
    with suppress(ConnectionResetError):
        while plain.recv(4096):
            pass
    return True


@pytest.mark.parametrize(
    "sent, reason",
    [
        (API_VERSIONS, "it sent a plaintext Kafka request to a TLS listener; set security.protocol=SSL"),
        (b"GET / HTTP/1.1\r\n\r\n", "it sent an HTTP request to a TLS listener"),
        (b"\x80\x2e\x01\x03\x01", "it sent something else than TLS"),
        (b"\x16\x03\x01\xff\xff", "its first record is larger than TLS allows"),
        (b"\x16\x03\x01\x00\x04abcd", "the TLS handshake failed"),
    ],
)
def test_something_else_than_tls_is_closed_at_once(
    broker: TlsBroker, told: Callable[[str], None], sent: bytes, reason: str
) -> None:
    with connected(broker.port) as plain:
        plain.sendall(sent)
        assert is_closed(plain)
    told(reason)
    serves(broker)


def test_tls_at_a_plaintext_listener_is_closed_with_a_hint(
    broker: TlsBroker, told: Callable[[str], None]
) -> None:
    with connected(broker.inner) as plain, pytest.raises((ssl.SSLError, OSError)):
        context().wrap_socket(plain, server_hostname="localhost")
    told("looks like TLS")


def expired() -> Issued:
    return issue(certificates().authority, "CN=alice", NOW, days=-1)


@pytest.mark.parametrize(
    "issued, reason",
    [
        (lambda: None, "the client shows no certificate, and ssl.client.auth=required"),
        (lambda: certificates().mallory, "add the authority that signed it to the trust store"),
        (expired, "certificate has expired; renew it"),
    ],
)
def test_a_wrong_certificate_is_refused_with_the_reason(
    broker: TlsBroker, told: Callable[[str], None], issued: Callable[[], Issued | None], reason: str
) -> None:
    with (
        connected(broker.port) as plain,
        pytest.raises(ssl.SSLError),
        context(issued()).wrap_socket(plain, server_hostname="localhost") as talk,
    ):
        talk.sendall(API_VERSIONS)
        talk.recv(4096)
        talk.recv(4096)
    told(reason)
    serves(broker)


def test_a_client_that_does_not_trust_the_broker_is_told_apart(
    broker: TlsBroker, told: Callable[[str], None]
) -> None:
    distrustful = ssl.create_default_context(cafile=certificates().other_ca_file)
    with connected(broker.port) as plain, pytest.raises(ssl.SSLCertVerificationError):
        distrustful.wrap_socket(plain, server_hostname="localhost")
    told("does not trust the authority of our certificate")


def hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_handshakes_that_stop_in_the_middle_give_way_and_end(
    told: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_tls, "HALF_OPEN_MAX", 8)
    monkeypatch.setattr(listener_tls, "HANDSHAKE_SECONDS_MAX", 1.0)
    first = hello()
    with ExitStack() as stack, TlsBroker() as broker:
        half_open = [stack.enter_context(connected(broker.port)) for _ in range(20)]
        for number, each in enumerate(half_open):
            each.sendall(first[: [0, 1, 5, 100, len(first)][number % 5]])
        serves(broker)
        told("too many are in their TLS handshake")
        told("the TLS handshake is not complete after 1 s")
        assert all(is_closed(each) for each in half_open)
        serves(broker)


def test_peers_that_do_not_go_on_lose_their_slots_and_a_crowd_is_served(
    told: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_tls, "SLOTS", 2)
    monkeypatch.setattr(listener_tls, "PEER_SECONDS_MIN", 0.2)
    with ExitStack() as stack, TlsBroker() as broker:
        for _ in range(6):
            stack.enter_context(connected(broker.port)).sendall(hello())
        with ThreadPoolExecutor(20) as crowd:
            list(crowd.map(serves, [broker] * 60))
        told("its TLS handshake does not go on")


def test_a_handshake_that_takes_long_stops_nobody_else(
    broker: TlsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It computes in a thread of its own: the loop goes on, and so does another handshake."""
    gate, is_waiting = threading.Event(), threading.Event()
    step = TlsTransport._step

    def slow_step(self: TlsTransport) -> tuple[bool, object]:
        if not is_waiting.is_set():
            is_waiting.set()
            assert gate.wait(SECONDS)
        return step(self)

    monkeypatch.setattr(TlsTransport, "_step", slow_step)
    with connected(broker.port) as slow:
        slow.sendall(hello())
        assert is_waiting.wait(SECONDS)
        with connected(broker.inner) as plain:
            plain.sendall(API_VERSIONS)
            assert plain.recv(4096)
        serves(broker)
        gate.set()
        assert slow.recv(4096)  # the broker's part of the handshake


def test_handshakes_with_random_damage_never_harm_the_broker(broker: TlsBroker) -> None:
    rng = random.Random(17)
    good = hello()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        cut = rng.randrange(1, len(data) + 1) if rng.random() < 0.5 else len(data)
        with connected(broker.port) as plain, suppress(OSError):
            plain.sendall(data[:cut])
            plain.shutdown(socket.SHUT_WR)
            assert is_closed(plain)
    serves(broker)


def test_damaged_records_after_the_handshake_close_the_connection(broker: TlsBroker) -> None:
    rng = random.Random(18)
    for _ in range(20):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        talk = context(certificates().alice).wrap_bio(incoming, outgoing, server_hostname="localhost")
        with connected(broker.port) as plain:
            while True:
                try:
                    talk.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    incoming.write(plain.recv(65536))
            talk.write(API_VERSIONS)
            plain.sendall(outgoing.read())
            talk.write(API_VERSIONS)
            data = bytearray(outgoing.read())
            data[rng.randrange(len(data))] ^= 1 + rng.randrange(255)
            plain.sendall(data)
            plain.shutdown(socket.SHUT_WR)
            assert is_closed(plain)
    serves(broker)


def test_no_place_is_lost_by_failed_handshakes() -> None:
    """Each failure releases its place among `max.connections`, and is counted."""
    (port,) = free_ports(1)
    with TlsBroker(max_connections="12", **{"barnabas.metrics.port": port}) as broker:
        for _ in range(40):
            with connected(broker.port) as plain:
                plain.sendall(API_VERSIONS)
                assert is_closed(plain)
        with BlockingCluster(
            [Address("127.0.0.1", broker.port)], security=ClientSecurity("SSL", context())
        ) as cluster:
            run(Admin(cluster).list_topics())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as page:
            text = page.read().decode()
    found = Counter[str]()
    pattern = r"^kafka_server_socket_server_metrics_(\w+)_authentication_total.*? (\d+)"
    for name, count in re.findall(pattern, text, re.M):  # of each listener
        found[name] += int(count)
    assert found["failed"] == 40 and found["successful"] >= 1
    [ends] = re.findall(
        r'^barnabas_certificate_expiry_seconds\{listener="\w+",subject=".+"\} (\S+)', text, re.M
    )
    assert float(ends) > time.time()

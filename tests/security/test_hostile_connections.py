"""Hostile bytes by the thousand on listeners with TLS and SASL, before and during a login and after it.

An honest client works on another listener meanwhile. Nothing that comes before a login may have an effect.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.clients.client_security import client_security
from barnabas.security.sasl.mechanism import ClientExchange
from barnabas.testing import Broker
from broker.conversation import Conversation, end_offset
from hostile.conftest import MIB, honest_work, resident_bytes
from hostile.frames_of_all_kinds import MUTATIONS, hostile_frames
from interop.frames import framed, request

from .kdc import HOST
from .locked_broker import Locked, Way, add_users, locked_broker
from .tls_world import certificates

CONNECTIONS = 32
GROWTH_MAX = 64 * MIB
READ_TIMEOUT_S = 30.0
TLS_HEADER_BYTES, TLS_ALERT_BYTES = 5, 2 + 1 + 16
OPEN_TO_ALL = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
# Only frames are sent, and no request may change the broker that the honest client uses.
HARMLESS = set(APIS) - {ApiKey.UNREGISTER_BROKER, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS}
Attack = Callable[[socket.socket], bytes]


@pytest.fixture(scope="module")
def broker(locked: Locked) -> Iterator[Broker]:
    made = locked_broker(locked, in_process=False)
    made._overrides["connection.failed.authentication.delay.ms"] = "0"
    with made:
        add_users(made.bootstrap)
        for topic in ("honest", "hostile"):
            made.create_topic(topic, configs={"retention.ms": -1})  # the records are of 1970
        yield made


@pytest.fixture(scope="module")
def worked(broker: Broker) -> Iterator[None]:
    """An honest client works as long as the tests of this file run; memory is bounded."""
    with honest_work(broker.port, "honest"):
        before = resident_bytes(broker.pid)
        yield
        grown = resident_bytes(broker.pid) - before
    assert grown < GROWTH_MAX, f"{grown / MIB:.0f} MiB more than before"
    assert "Traceback" not in broker.log_text


@pytest.fixture
def count(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--frames")) // 40


def attack(
    port: int, attacks: Iterator[Attack], count: int, context: ssl.SSLContext | None = None
) -> list[bytes]:
    """Each attack on a connection of its own, many at once. Returns all that the broker says to each when it
    has let go of them: TLS records if there is a context, since a socket that is shut down decrypts none."""
    answers = []
    while count > 0:
        victims = []
        for each in islice(attacks, min(CONNECTIONS, count)):
            victim = socket.create_connection(("127.0.0.1", port), READ_TIMEOUT_S)
            said = b""
            with contextlib.suppress(OSError):
                if context is not None:
                    victim = context.wrap_socket(victim, server_hostname=HOST)
                said = each(victim)
                victim.shutdown(socket.SHUT_WR)
            victims.append((victim, said))
        for victim, said in victims:
            with victim, contextlib.suppress(ConnectionError, ssl.SSLError):
                while part := victim.recv(1 << 16):
                    said += part
            answers.append(said if context is None else b"".join(without_alerts(said)))
        count -= CONNECTIONS
    return answers


def without_alerts(records: bytes) -> Iterator[bytes]:
    """The records with data: an alert of TLS 1.3 has 2 bytes, a byte for its type and a tag."""
    while len(records) > TLS_HEADER_BYTES:
        end = TLS_HEADER_BYTES + int.from_bytes(records[3:TLS_HEADER_BYTES])
        if end - TLS_HEADER_BYTES > TLS_ALERT_BYTES:
            yield records[:end]
        records = records[end:]


def sent(data: bytes) -> Attack:
    def send(victim: socket.socket) -> bytes:
        victim.sendall(data)
        return b""

    return send


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates().ca_file)


@pytest.mark.usefixtures("worked")
@pytest.mark.parametrize("listener", ["LOGIN", "LOCKED"])
def test_frames_before_a_login_have_no_effect(
    broker: Broker, locked: Locked, listener: str, count: int
) -> None:
    frames = list(islice(hostile_frames(seed=count, keys=HARMLESS), count))
    context = trusting() if listener == "LOCKED" else None
    answers = attack(locked.ports[listener], map(sent, frames), count, context)
    for frame, answer in zip(frames, answers, strict=True):
        if answer:
            assert struct.unpack_from(">h", frame, 4)[0] in OPEN_TO_ALL, (frame, answer)
    assert any(answers), "some frames are right, and ApiVersions is open to all"
    with Conversation(broker) as talk:
        assert end_offset(talk, "hostile") == 0


def exchange_of(locked: Locked, mechanism: str) -> ClientExchange:
    made = client_security(locked.java(Way("LOGIN", mechanism))).new_exchange
    assert made is not None
    return made(HOST)


def spoiled_login(locked: Locked, mechanism: str, rng: random.Random) -> Attack:
    """A login in which one message is spoiled, left out, repeated, or comes too early."""
    spoiled, how = rng.randrange(3), rng.choice(("mutate", "omit", "repeat", "huge", "other api", "noise"))

    def spoil(message: bytes, number: int, victim: socket.socket) -> None:
        if number != spoiled:
            victim.sendall(framed(message))
        elif how == "mutate":
            victim.sendall(rng.choice(MUTATIONS)(rng, bytearray(message)))
        elif how == "repeat":
            victim.sendall(framed(message) * 3)
        elif how == "huge":
            victim.sendall(struct.pack(">i", 2**30) + message)
        elif how == "other api":
            victim.sendall(framed(request(ApiKey.METADATA, 9, 2, 7, b"\x00\x00\x00\x00")))
        elif how == "noise":
            token = SaslAuthenticateRequest(auth_bytes=rng.randbytes(rng.choice((0, 1, 100, 5000))))
            victim.sendall(framed(request(ApiKey.SASL_AUTHENTICATE, 2, 2, 7, token.encode(2))))

    def run(victim: socket.socket) -> bytes:
        victim.settimeout(0.05)  # a message that is left out gets no answer
        said = b""
        exchange = exchange_of(locked, mechanism)
        handshake = SaslHandshakeRequest(mechanism=mechanism)
        spoil(request(ApiKey.SASL_HANDSHAKE, 1, 1, 7, handshake.encode(1)), 0, victim)
        token: bytes | None = exchange.first()
        for number in range(1, 4):
            with contextlib.suppress(TimeoutError):
                said = victim.recv(1 << 16)
            if token is None:
                break
            body = SaslAuthenticateRequest(auth_bytes=token).encode(2)
            spoil(request(ApiKey.SASL_AUTHENTICATE, 2, 2, 7, body), number, victim)
            token = b"\x01" if len(said) < 30 else said[-30:]
        victim.settimeout(READ_TIMEOUT_S)
        return b""

    return run


@pytest.mark.usefixtures("worked")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"])
def test_logins_with_a_spoiled_message_harm_nobody(locked: Locked, mechanism: str, count: int) -> None:
    if mechanism not in locked.mechanisms:
        pytest.skip("Kerberos is not installed")
    rng = random.Random(count)
    attacks = (spoiled_login(locked, mechanism, rng) for _ in range(count))
    attack(locked.ports["LOGIN"], attacks, count // 10)


@pytest.mark.usefixtures("worked")
def test_frames_after_a_login_harm_nobody(broker: Broker, locked: Locked, count: int) -> None:
    frames = hostile_frames(seed=count + 1, keys=HARMLESS)
    handshake = framed(
        request(ApiKey.SASL_HANDSHAKE, 1, 1, 7, SaslHandshakeRequest(mechanism="PLAIN").encode(1))
    )
    token = exchange_of(locked, "PLAIN").first()
    login = framed(
        request(ApiKey.SASL_AUTHENTICATE, 2, 2, 7, SaslAuthenticateRequest(auth_bytes=token).encode(2))
    )

    def authenticated(frame: bytes) -> Attack:
        def run(victim: socket.socket) -> bytes:
            victim.sendall(handshake)
            victim.recv(1 << 16)
            victim.sendall(login)
            assert victim.recv(1 << 16)
            victim.sendall(frame)
            return b""

        return run

    answers = attack(locked.ports["LOGIN"], map(authenticated, frames), count)
    assert any(answers)


@pytest.mark.usefixtures("worked")
@pytest.mark.parametrize("listener", ["TLS", "MUTUAL", "LOCKED"])
def test_bytes_that_are_not_tls_harm_nobody(
    broker: Broker, locked: Locked, listener: str, count: int
) -> None:
    rng = random.Random(count)
    hello = client_hello()

    def hostile() -> Iterator[Attack]:
        frames = hostile_frames(seed=count, keys=HARMLESS)
        while True:
            data = bytearray(hello)
            match rng.randrange(4):
                case 0:
                    yield sent(next(frames))
                case 1:
                    yield sent(bytes(data[: rng.randrange(len(data))]))
                case 2:
                    for _ in range(rng.randrange(1, 8)):
                        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                    yield sent(bytes(data))
                case _:
                    yield sent(bytes(data) + rng.randbytes(rng.randrange(1, 2000)))

    attack(locked.ports[listener], hostile(), count // 4)
    with Conversation(broker) as talk:
        assert end_offset(talk, "hostile") >= 0


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()

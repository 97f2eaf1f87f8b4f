"""Logins byte by byte: what a client may send in which order, and what comes back.

A script is a list of steps on one connection. `play` returns an outcome for each step, in a form that is
equal for equal brokers: error codes, the broker's words, whether the connection was closed.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from tests.security.sasl_broker import USERS

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import (
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from barnabas.protocol.headers import RequestHeader, ResponseHeader
from barnabas.security.sasl.scram import ScramClient, ScramLogin

TIMEOUT_S = 10.0
SESSION_MS = 1_500  # of PLAIN; sessions of other mechanisms have no limit
CLOSED = "closed"
ALICE = f"\0alice\0{USERS['alice']}".encode()
BOB = f"\0bob\0{USERS['bob']}".encode()
Step = Callable[["Wire"], Any]


class Wire:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._last = 0

    def close(self) -> None:
        self._socket.close()

    def ask(self, api: ApiKey, version: int, header_version: int | None = None, **values: Any) -> Any:
        """The response as a message, or CLOSED."""
        self._last += 1
        body = request_class(api)(**values)
        known = version in request_class(api).schema.versions
        shown = version if known else 0
        header_version = request_header_version(api, shown) if header_version is None else header_version
        header = RequestHeader(
            request_api_key=api, request_api_version=version, correlation_id=self._last, client_id="test"
        )
        frame = self.exchange(header.encode(header_version) + body.encode(shown))
        if not isinstance(frame, bytes):
            return frame
        answered = shown if known else 0
        header_bytes = len(ResponseHeader().encode(response_header_version(api, answered)))
        assert int.from_bytes(frame[:4], "big") == self._last
        return response_class(api).decode(frame[header_bytes:], answered)

    def exchange(self, frame: bytes) -> Any:
        """Send a frame and return the next one, or CLOSED."""
        return self.send(struct.pack(">i", len(frame)) + frame)

    def send(self, data: bytes) -> Any:
        try:
            self._socket.sendall(data)
            size = struct.unpack(">i", self._read(4))[0]
            return self._read(size)
        except (ConnectionError, EOFError):
            return CLOSED

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data


# -- steps ---------------------------------------------------------------------------------------


def versions(version: int = 3) -> Step:
    def step(wire: Wire) -> Any:
        names = {} if version < 3 else {"client_software_name": "x", "client_software_version": "1"}
        header_version = None if version <= 4 else 2
        told = wire.ask(ApiKey.API_VERSIONS, version, header_version, **names)
        return told if told == CLOSED else {"error": told.error_code}

    return step


def handshake(mechanism: str, version: int = 1) -> Step:
    def step(wire: Wire) -> Any:
        told = wire.ask(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)
        return told if told == CLOSED else {"error": told.error_code, "mechanisms": sorted(told.mechanisms)}

    return step


def token(data: bytes, version: int = 2) -> Step:
    def step(wire: Wire) -> Any:
        return shown(wire.ask(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=data), version)

    return step


def shown(told: Any, version: int) -> Any:
    if told == CLOSED:
        return CLOSED
    found = {"error": told.error_code, "message": told.error_message, "bytes": bytes(told.auth_bytes).hex()}
    if version > 0:
        found["has_limit"] = bool(told.session_lifetime_ms)
    return found


def scram(user: str, password: str, *, nonce: bytes = b"") -> Step:
    """Both messages of SCRAM-SHA-512; `nonce` takes the place of the nonce in the second."""

    def step(wire: Wire) -> Any:
        client = ScramClient(ScramLogin("SCRAM-SHA-512", user, password), "nonce-of-the-client")
        first = wire.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=client.first())
        if first == CLOSED or first.error_code:
            return shown(first, 2)
        final = client.step(bytes(first.auth_bytes))
        assert final is not None
        if nonce:
            final = b"c=biws,r=" + nonce + b",p=" + final.rpartition(b",p=")[2]
        told = wire.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=final)
        found = shown(told, 2)
        if found != CLOSED and not told.error_code:
            assert client.step(bytes(told.auth_bytes)) is None
            del found["bytes"]
        return found

    return step


def bare(data: bytes) -> Step:
    def step(wire: Wire) -> Any:
        told = wire.exchange(data)
        return told if told == CLOSED else {"bare": told.hex()}

    return step


def request(api: ApiKey, version: int, **values: Any) -> Step:
    """Any other request: only its error, wherever that is, is shown."""

    def step(wire: Wire) -> Any:
        told = wire.ask(api, version, None, **values)
        return CLOSED if told == CLOSED else {"error": error_in(told)}

    return step


def error_in(told: Any) -> int | None:
    found: int | None = getattr(told, "error_code", None)
    return found


def metadata(version: int = 9) -> Step:
    """Metadata of one topic that does not exist: error 3 if it is served."""

    def step(wire: Wire) -> Any:
        topic = request_class(ApiKey.METADATA).MetadataRequestTopic(name="none")
        told = wire.ask(ApiKey.METADATA, version, topics=[topic], allow_auto_topic_creation=False)
        return CLOSED if told == CLOSED else {"errors": [each.error_code for each in told.topics]}

    return step


def send(data: bytes) -> Step:
    """Bytes as they are."""
    return lambda wire: wire.send(data)


def pause(milliseconds: int) -> Step:
    def step(wire: Wire) -> None:
        time.sleep(milliseconds / 1000)

    return step


PLAIN = [versions(), handshake("PLAIN"), token(ALICE)]
UNLIMITED = [versions(), handshake("SCRAM-SHA-512"), scram("alice", USERS["alice"])]
AGAIN = 1_050  # a connection may authenticate again once a second

SCRIPTS: dict[str, list[Step]] = {
    "plain": [*PLAIN, metadata()],
    "plain without ApiVersions": [handshake("PLAIN"), token(ALICE), metadata()],
    "plain, token v0": [versions(), handshake("PLAIN"), token(ALICE, 0), metadata()],
    "plain, token v1": [versions(), handshake("PLAIN"), token(ALICE, 1), metadata()],
    "plain, ApiVersions v0": [versions(0), handshake("PLAIN"), token(ALICE), metadata()],
    "plain bare": [versions(), handshake("PLAIN", 0), bare(ALICE), metadata()],
    "plain bare, wrong": [versions(), handshake("PLAIN", 0), bare(b"\0alice\0wrong"), metadata()],
    "plain bare, empty": [versions(), handshake("PLAIN", 0), bare(b"")],
    "plain bare, a header": [versions(), handshake("PLAIN", 0), token(ALICE)],
    "plain, wrong": [versions(), handshake("PLAIN"), token(b"\0alice\0wrong"), metadata()],
    "plain, wrong, token v0": [versions(), handshake("PLAIN"), token(b"\0alice\0wrong", 0)],
    "plain, unknown": [versions(), handshake("PLAIN"), token(b"\0nobody\0x")],
    "plain, no user": [versions(), handshake("PLAIN"), token(b"\0\0x")],
    "plain, no password": [versions(), handshake("PLAIN"), token(b"\0alice\0")],
    "plain, empty": [versions(), handshake("PLAIN"), token(b"")],
    "plain, two parts": [versions(), handshake("PLAIN"), token(b"\0alice")],
    "plain, four parts": [versions(), handshake("PLAIN"), token(ALICE + b"\0")],
    "plain, own authorization id": [versions(), handshake("PLAIN"), token(b"alice" + ALICE), metadata()],
    "plain, other authorization id": [versions(), handshake("PLAIN"), token(b"bob" + ALICE)],
    "plain, then a token": [*PLAIN, token(ALICE), metadata()],
    "scram": [*UNLIMITED, metadata()],
    "scram, wrong": [versions(), handshake("SCRAM-SHA-512"), scram("alice", "wrong"), metadata()],
    "scram, other nonce": [versions(), handshake("SCRAM-SHA-512"), scram("alice", "x", nonce=b"mine")],
    "scram, nonsense": [versions(), handshake("SCRAM-SHA-512"), token(b"nonsense")],
    "scram, channel binding": [versions(), handshake("SCRAM-SHA-512"), token(b"p=x,,n=alice,r=a")],
    "scram, other authorization id": [versions(), handshake("SCRAM-SHA-512"), token(b"n,a=bob,n=alice,r=a")],
    "another mechanism": [versions(), handshake("OAUTHBEARER"), handshake("PLAIN")],
    "no mechanism": [versions(), handshake("")],
    "a mechanism in small letters": [versions(), handshake("plain")],
    "a token first": [token(ALICE)],
    "metadata first": [metadata()],
    "metadata after ApiVersions": [versions(), metadata()],
    "a token after ApiVersions": [versions(), token(ALICE)],
    "ApiVersions twice": [versions(), versions()],
    "an unknown ApiVersions, then a known one": [versions(99), versions(), handshake("PLAIN")],
    "an unknown ApiVersions twice": [versions(99), versions(99), versions(), handshake("PLAIN")],
    "an unknown ApiVersions after a known one": [versions(), versions(99)],
    "an unknown handshake": [versions(), handshake("PLAIN", 9)],
    "an unknown token": [versions(), handshake("PLAIN"), token(ALICE, 9)],
    "an unknown api": [send(struct.pack(">ihhih", 10, 999, 0, 1, -1))],
    "an unknown api after the handshake": [
        versions(), handshake("PLAIN"), send(struct.pack(">ihhih", 10, 999, 0, 1, -1))
    ],
    "metadata after the handshake": [versions(), handshake("PLAIN"), metadata(), token(ALICE)],
    "metadata v4 after the handshake": [versions(), handshake("PLAIN"), metadata(4)],
    "metadata v12 after the handshake": [versions(), handshake("PLAIN"), metadata(12)],
    "ApiVersions after the handshake": [versions(), handshake("PLAIN"), versions(), token(ALICE)],
    "two handshakes": [versions(), handshake("PLAIN"), handshake("PLAIN"), token(ALICE)],
    "DescribeCluster after the handshake": [
        versions(), handshake("PLAIN"), request(ApiKey.DESCRIBE_CLUSTER, 0)
    ],
    "ListGroups after the handshake": [versions(), handshake("PLAIN"), request(ApiKey.LIST_GROUPS, 3)],
    "FindCoordinator after the handshake": [
        versions(), handshake("PLAIN"), request(ApiKey.FIND_COORDINATOR, 2, key="g")
    ],
    "a session without a limit": [*UNLIMITED, handshake("SCRAM-SHA-512"), token(b"x"), metadata()],
    "again": [*PLAIN, handshake("PLAIN"), token(ALICE), metadata()],
    "again, bare": [*PLAIN, handshake("PLAIN", 0), bare(ALICE), metadata()],
    "again at once": [*PLAIN, handshake("PLAIN"), token(ALICE), handshake("PLAIN"), metadata()],
    "again and again": [
        *PLAIN, handshake("PLAIN"), token(ALICE), pause(AGAIN), handshake("PLAIN"), token(ALICE), metadata()
    ],
    "again, another mechanism": [*PLAIN, handshake("SCRAM-SHA-512"), token(b"n,,n=alice,r=a"), metadata()],
    "again, a mechanism that is not enabled": [*PLAIN, handshake("OAUTHBEARER"), metadata()],
    "again, another user": [*PLAIN, handshake("PLAIN"), token(BOB), metadata()],
    "again, wrong": [*PLAIN, handshake("PLAIN"), token(b"\0alice\0wrong"), metadata()],
    "again, metadata between": [*PLAIN, handshake("PLAIN"), metadata(), token(ALICE)],
    "again, ApiVersions first": [*PLAIN, versions(), handshake("PLAIN"), token(ALICE), metadata()],
    "again, a token without a handshake": [*PLAIN, token(ALICE), metadata()],
    "after the limit": [*PLAIN, pause(SESSION_MS + 200), metadata()],
    "after the limit, ApiVersions": [*PLAIN, pause(SESSION_MS + 200), versions()],
    "after the limit, a token": [*PLAIN, pause(SESSION_MS + 200), token(ALICE)],
    "after the limit, again": [*PLAIN, pause(SESSION_MS + 200), handshake("PLAIN"), token(ALICE), metadata()],
    "after the limit, token v0": [
        versions(), handshake("PLAIN"), token(ALICE, 0), pause(SESSION_MS + 200), metadata()
    ],
    "a frame that is too large": [versions(), send(struct.pack(">i", 600_000) + bytes(1000))],
    "a frame of a negative size": [versions(), send(struct.pack(">i", -1))],
    "a frame without a header": [send(struct.pack(">ih", 2, 18))],
    "a header that is cut off": [send(struct.pack(">ihhi", 8, 17, 1, 1))],
    "a handshake that is cut off": [send(struct.pack(">ihhihh", 12, 17, 1, 1, -1, 500))],
}  # fmt: skip


def play(port: int, name: str) -> list[Any]:
    """The outcomes of a script's steps, up to the one that closes the connection."""
    wire = Wire(port)
    try:
        outcomes = []
        for step in SCRIPTS[name]:
            outcome = step(wire)
            if outcome is not None:
                outcomes.append(outcome)
            if outcome == CLOSED:
                break
        return outcomes
    finally:
        wire.close()

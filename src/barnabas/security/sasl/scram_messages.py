"""SCRAM's messages and keys (RFC 5802), as Kafka uses them: no channel binding, no SASLprep.

In: bytes of a peer. Out: their parts, or ValueError. Messages are at most some hundred bytes long; patterns
match in linear time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass

from barnabas.security.sasl.mechanisms import StoredKeys

ALGORITHMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4096
HEADER = "n,,"
NAME = r"(?:[^=,\x00]|=2C|=3D)+"
VALUE = r"[^,\x00]+"
NONCE = r"[\x21-\x2b\x2d-\x7e]+"
BASE64 = r"[A-Za-z0-9+/]+={0,2}"
CLIENT_FIRST = (
    rf"(?P<header>n,(?:a=(?P<authorization>{NAME}))?,)"
    rf"(?P<bare>(?:m={VALUE},)?n=(?P<name>{NAME}),r=(?P<nonce>{NONCE})(?P<extensions>(?:,[A-Za-z]+={VALUE})*))"
)
SERVER_FIRST = (
    rf"(?:m={VALUE},)?r=(?P<nonce>{NONCE}),s=(?P<salt>{BASE64}),i=(?P<iterations>[1-9][0-9]{{0,8}})(?:,.*)?"
)
CLIENT_FINAL = (
    rf"(?P<bare>c=(?P<binding>{BASE64}),r=(?P<nonce>{NONCE})(?:,[A-Za-z]+={VALUE})*),p=(?P<proof>{BASE64})"
)
SERVER_FINAL = rf"(?:e=(?P<error>{VALUE})|v=(?P<signature>{BASE64}))(?:,.*)?"


@dataclass(frozen=True, slots=True)
class ClientFirst:
    authorization: str
    name: str
    nonce: str
    extensions: dict[str, str]
    header: str  # of GS2: the client's last message repeats it as its channel binding
    bare: str  # the rest: part of the message that is signed


def parse_client_first(message: bytes) -> ClientFirst:
    found = matched(CLIENT_FIRST, message, "first message of the client")
    extensions = dict(part.split("=", 1) for part in (found["extensions"] or "").split(",") if part)
    return ClientFirst(
        authorization=unescaped(found["authorization"] or ""),
        name=unescaped(found["name"]),
        nonce=found["nonce"],
        extensions=extensions,
        header=found["header"],
        bare=found["bare"],
    )


@dataclass(frozen=True, slots=True)
class ServerFirst:
    nonce: str
    salt: bytes
    iterations: int


def parse_server_first(message: bytes) -> ServerFirst:
    found = matched(SERVER_FIRST, message, "first message of the server")
    return ServerFirst(found["nonce"], decoded(found["salt"]), int(found["iterations"]))


@dataclass(frozen=True, slots=True)
class ClientFinal:
    binding: bytes
    nonce: str
    proof: bytes
    bare: str  # without the proof


def parse_client_final(message: bytes) -> ClientFinal:
    found = matched(CLIENT_FINAL, message, "last message of the client")
    return ClientFinal(decoded(found["binding"]), found["nonce"], decoded(found["proof"]), found["bare"])


def parse_server_final(message: bytes) -> bytes:
    """The server's signature. ValueError also for an error that the server tells."""
    found = matched(SERVER_FINAL, message, "last message of the server")
    if found["error"]:
        raise ValueError(f"the server refused the login: {found['error']}")
    return decoded(found["signature"])


def matched(pattern: str, message: bytes, what: str) -> re.Match[str]:
    found = re.fullmatch(pattern, message.decode())  # UnicodeDecodeError is a ValueError
    if found is None:
        raise ValueError(f"the {what} has another form than SCRAM's")
    return found


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"invalid base64: {error}") from None


def escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def salted_password(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Some milliseconds of work."""
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def stored_keys(algorithm: str, salted: bytes, salt: bytes, iterations: int) -> StoredKeys:
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored = hashlib.new(algorithm, client_key).digest()
    return StoredKeys(salt, stored, hmac.digest(salted, b"Server Key", algorithm), iterations)


def combined(one: bytes, other: bytes) -> bytes:
    """Combine two byte strings, bit by bit, by exclusive or."""
    size = len(one)
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(size, "big")

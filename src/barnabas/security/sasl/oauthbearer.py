"""OAUTHBEARER: the client presents a bearer token, the server checks it (RFC 7628, KIP-255).

A refused token takes one round more than in other mechanisms. The server responds with a JSON text, the
client confirms it with one byte, and only then the login fails with that text as its error message.
Does not know: how a token is checked, or where a client gets one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.security.errors import AuthenticationFailed
from barnabas.security.sasl.mechanism import Identity

MECHANISM = "OAUTHBEARER"
SEPARATOR = "\x01"
CONFIRMATION = b"\x01"  # the client's response to the JSON text of a refusal
INVALID_CREDENTIALS = (
    f"Authentication failed during authentication due to invalid credentials with SASL mechanism {MECHANISM}"
)

_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")


class TokenRefused(Exception):
    """A token that does not hold. The message is for our log and does not contain the token."""

    def __init__(self, reason: str, status: str = "invalid_token", scope: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope

    def told(self) -> str:
        """The JSON text for the client."""
        answer = {"status": self.status} | ({"scope": self.scope} if self.scope else {})
        return json.dumps(answer, separators=(",", ":"))


class FirstMessage(NamedTuple):
    token: str
    authorization_id: str
    extensions: dict[str, str]


class OAuthBearerServer:
    """The server's side of one login. `check` returns the identity of a token or raises TokenRefused."""

    def __init__(self, check: Callable[[str], Identity]) -> None:
        self._check = check
        self._refusal: TokenRefused | None = None
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        return self._identity

    def step(self, message: bytes) -> bytes:
        if self._refusal is not None:
            raise AuthenticationFailed(self._refusal.told(), f"token refused: {self._refusal}")
        first = parse_first_message(message)
        try:
            identity = self._check(first.token)
        except TokenRefused as refusal:
            self._refusal = refusal
            return refusal.told().encode()
        if first.authorization_id and first.authorization_id != identity.name:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id})"
                f" that is different from the token's principal name ({identity.name})",
                f"authorization id {first.authorization_id!r} with a token of {identity.name!r}",
            )
        self._identity = identity
        return b""


def parse_first_message(message: bytes) -> FirstMessage:
    """The parts of `n,[a=authzid],^Aauth=Bearer <token>[^Akey=value...]^A^A`. AuthenticationFailed."""
    try:
        text = message.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("it is not UTF-8") from None
    header, separator, rest = text.partition(SEPARATOR)
    if not separator or not rest.endswith(SEPARATOR):
        raise _malformed("it lacks its separators")
    authorization_id = _authorization_id(header)
    pairs: dict[str, str] = {}
    for pair in rest[:-1].split(SEPARATOR)[:-1]:
        name, equals, value = pair.partition("=")
        if not equals or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise _malformed("a key or value has characters that are not allowed")
        pairs[name] = value
    if not rest[:-1].endswith(SEPARATOR):
        raise _malformed("it lacks the separator at its end")
    scheme, blank, token = pairs.pop("auth", "").partition(" ")
    if scheme.lower() != "bearer" or not blank:
        raise _malformed("it has no auth=Bearer <token>")
    token = token.strip(" ")
    if not token:
        raise _malformed("its token is empty")
    return FirstMessage(token, authorization_id, pairs)


def _authorization_id(header: str) -> str:
    parts = header.split(",")
    if len(parts) != 3 or parts[0] != "n" or parts[2]:
        raise _malformed("its header is not n,[a=authzid],")
    if not parts[1]:
        return ""
    name, _, value = parts[1].partition("=")
    if name != "a" or not value or re.search("=(?!2C|3D)", value):
        raise _malformed("its authorization id cannot be read")
    return value.replace("=2C", ",").replace("=3D", "=")


def _malformed(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(INVALID_CREDENTIALS, f"malformed first message of {MECHANISM}: {reason}")


class OAuthBearerClient:
    """The client's side of one login, with a token and SASL extensions (KIP-342)."""

    is_slow: bool = False

    def __init__(
        self, token: str, extensions: Mapping[str, str] | None = None, authorization_id: str = ""
    ) -> None:
        self._token = token
        self._extensions = extensions or {}
        self._authorization_id = authorization_id

    def first(self) -> bytes:
        escaped = self._authorization_id.replace("=", "=3D").replace(",", "=2C")
        header = f"n,a={escaped}," if escaped else "n,,"
        pairs = {"auth": f"Bearer {self._token}", **self._extensions}
        text = "".join(f"{name}={value}{SEPARATOR}" for name, value in pairs.items())
        return f"{header}{SEPARATOR}{text}{SEPARATOR}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        # An empty challenge is success. Anything else is a refusal, and the broker's error follows.
        return CONFIRMATION if challenge else None


def check_extensions(extensions: Mapping[str, str]) -> str | None:
    """Why these SASL extensions cannot be sent; None if they can."""
    for name, value in extensions.items():
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name):
            return f"extension name {name!r}: expected letters, and not auth"
        if not _EXTENSION_VALUE.fullmatch(value):
            return f"the value of extension {name!r} is empty or has characters that are not allowed"
    return None

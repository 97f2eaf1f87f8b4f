"""Who may ask the serving process: bearer tokens, or names and passwords (HTTP Basic).

In: tokens and users. Out: an ASGI application in front of another one. Without tokens and users everybody may
ask, which is why the process then listens on loopback addresses only. A refusal takes a moment, says the same
for unknown names and wrong passwords, and holds nothing of what was sent. Does not know: views.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

REFUSED_AFTER_S = 0.1
OPEN_PATHS = ("/health",)  # liveness tells nothing about data
GUARDED_PATHS = "/inner/"  # the service itself asks for the applications' token there
CHALLENGE = 'Basic realm="barnabas", charset="UTF-8", Bearer'
NOBODY = hashlib.sha256(b"nobody").digest()


@dataclass(frozen=True, slots=True)
class Guests:
    """Clients that may ask. Only hashes of secrets are kept."""

    tokens: tuple[bytes, ...] = field(default=(), repr=False)
    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def everybody(self) -> bool:
        return not self.tokens and not self.users

    def knows(self, authorization: str) -> bool:
        kind, _, rest = authorization.partition(" ")
        if kind.lower() == "bearer":
            return self._knows_token(rest.strip())
        if kind.lower() == "basic":
            return self._knows_user(rest.strip())
        return False

    def _knows_token(self, token: str) -> bool:
        given = digest(token)
        return any(hmac.compare_digest(given, each) for each in self.tokens)

    def _knows_user(self, encoded: str) -> bool:
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        is_right = hmac.compare_digest(digest(password), self.users.get(name, NOBODY))
        return bool(colon) and is_right and name in self.users


def guests(tokens: Iterable[str] = (), users: Mapping[str, str] | None = None) -> Guests:
    """Empty tokens and passwords would let everybody in: they count as none."""
    return Guests(
        tuple(digest(each) for each in tokens if each),
        {name: digest(password) for name, password in (users or {}).items() if password},
    )


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class Gate:
    """Lets requests of guests through; everything else gets 401."""

    def __init__(self, application: ASGIApp, allowed: Guests) -> None:
        self._application = application
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # none is served
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http" and not self._may_pass(scope):
            await asyncio.sleep(REFUSED_AFTER_S)
            refused = JSONResponse(
                {"error": "say who you are: a bearer token, or name and password"},
                401,
                headers={"www-authenticate": CHALLENGE},
            )
            await refused(scope, receive, send)
            return
        await self._application(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        path: str = scope["path"]
        if self._allowed.everybody or path in OPEN_PATHS or path.startswith(GUARDED_PATHS):
            return True
        for name, value in scope["headers"]:
            if name == b"authorization":
                return self._allowed.knows(value.decode("latin-1"))
        return False

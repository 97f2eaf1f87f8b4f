"""The two sides of a login. A mechanism implements them; nothing in here reads a socket or a clock.

A server's side is made for every login with what it needs (credentials, keys, the time), and is fed the
client's messages. A client's side makes the first message and answers the server's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Identity:
    """The outcome of a login."""

    name: str  # of the principal; its type is User
    is_token: bool = False  # logged in with a delegation token of this owner
    expires_at_ms: int | None = None  # of the credential itself (OAuth token, delegation token)
    scopes: tuple[str, ...] = field(default=(), compare=False)  # of an OAuth token


class ServerExchange(Protocol):
    def step(self, message: bytes) -> bytes:
        """The response to the client's message. Raises AuthenticationFailed."""

    @property
    def identity(self) -> Identity | None:
        """Known when the login is complete: then `step` has returned the last response."""


class ClientExchange(Protocol):
    is_slow: bool  # its messages take long to make: a face on an event loop makes them in a thread

    def first(self) -> bytes:
        """The first message."""

    def step(self, challenge: bytes) -> bytes | None:
        """The next message, or None when the server has proved all that it must. AuthenticationFailed."""

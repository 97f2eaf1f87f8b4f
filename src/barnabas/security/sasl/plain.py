"""PLAIN (RFC 4616): user name and password in one message.

The server's side asks a function whether the pair is right: the `user_<name>` options of the JAAS entry, or a
callback by Python entry point (`sasl.server.callback.handler.class=package.module:name`), called in a thread
as `name(user, password) -> bool`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping

from barnabas.security.entry_points import load_entry_point
from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.sasl.mechanism import ClientExchange, Identity
from barnabas.security.sasl.mechanisms import ClientConfig, ServerConfig, ServerMechanism

Verify = Callable[[str, str], bool]
USER_PREFIX = "user_"
DEFAULT_HANDLER = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
WRONG = "Authentication failed: Invalid username or password"


class PlainServer:
    def __init__(self, verify: Verify) -> None:
        self._verify = verify
        self._identity: Identity | None = None

    def step(self, message: bytes) -> bytes:
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        try:
            authorization, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise AuthenticationFailed(WRONG, "the PLAIN message is not UTF-8") from None
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        if not self._verify(user, password):
            raise AuthenticationFailed(WRONG, f"wrong password, or no user {user!r}")
        if authorization not in ("", user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._identity = Identity(user)
        return b""

    @property
    def identity(self) -> Identity | None:
        return self._identity


class PlainClient:
    is_slow = False

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def step(self, challenge: bytes) -> bytes | None:
        return None


class UserTable:
    """The users of a JAAS entry. Takes the same time for an unknown user as for a wrong password."""

    def __init__(self, options: Mapping[str, str], random_bytes: Callable[[int], bytes]) -> None:
        self._key = random_bytes(32)
        self._digests = {
            name.removeprefix(USER_PREFIX): self._digest(password)
            for name, password in options.items()
            if name.startswith(USER_PREFIX)
        }
        self._nobody = random_bytes(32)

    def verify(self, user: str, password: str) -> bool:
        return hmac.compare_digest(self._digests.get(user, self._nobody), self._digest(password))

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), hashlib.sha256)


def server_mechanism(config: ServerConfig) -> ServerMechanism:
    handler: str | None = config.settings["sasl.server.callback.handler.class"]
    if handler and handler != DEFAULT_HANDLER:
        verify = load_entry_point(handler)
        return ServerMechanism(lambda: PlainServer(verify), is_slow=lambda message: True)
    if config.jaas is None:
        raise SecuritySettingsError(config.lacks_jaas('one option user_<name>="<password>" for each user'))
    users = UserTable(config.jaas.options, config.random_bytes)
    return ServerMechanism(lambda: PlainServer(users.verify))


def client_mechanism(config: ClientConfig) -> Callable[[str], ClientExchange]:
    user, password = config.option("username"), config.option("password")
    return lambda host: PlainClient(user, password)

"""The login of a connection, client's side: SaslHandshake, then tokens in SaslAuthenticate.

Serves first logins and re-authentications (KIP-368) of every face. A broker that refuses is not asked again:
AuthenticationError has its words. Does not know: mechanisms, when a session is renewed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from barnabas.client.core.address import Address
from barnabas.client.core.errors import AuthenticationError, UnsupportedApi
from barnabas.client.core.versions import ApiRanges, Requests, newest_common
from barnabas.protocol import ApiKey, ErrorCode, Message
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.clients.client_security import ClientSecurity
from barnabas.security.errors import AuthenticationFailed

T = TypeVar("T")
STEPS_MAX = 10  # mechanisms need three at most
HANDSHAKE_VERSION_MIN = 1  # before, tokens have no header and no error is told


class LoginConnection(Requests, Protocol):
    async def aside(self, work: Callable[..., T], *arguments: object) -> T: ...


async def at_once(work: Callable[..., T], *arguments: object) -> T:
    return work(*arguments)


async def log_in(
    connection: LoginConnection, address: Address, versions: ApiRanges, security: ClientSecurity
) -> float:
    """Authenticate. Returns for how many ms the session lasts; 0: it has no limit."""
    assert security.new_exchange is not None
    mechanism = security.mechanism
    shake = version_of(SaslHandshakeRequest, address, versions, HANDSHAKE_VERSION_MIN)
    step = version_of(SaslAuthenticateRequest, address, versions)
    request = SaslHandshakeRequest(mechanism=mechanism)
    shaken = await connection.send(request, SaslHandshakeResponse, version=shake)
    if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(shaken.mechanisms) or "none"
        raise AuthenticationError(
            address, f"it does not offer the SASL mechanism {mechanism}; it offers {offered}"
        )
    if shaken.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(address, "this listener does not use SASL, or not now (ILLEGAL_SASL_STATE)")
    if shaken.error_code:
        raise AuthenticationError(address, f"SaslHandshake failed: {name_of(shaken.error_code)}")
    try:
        exchange = security.new_exchange(address.host)
        work = connection.aside if exchange.is_slow else at_once
        token: bytes | None = await work(exchange.first)
        for _ in range(STEPS_MAX):
            assert token is not None
            authenticate = SaslAuthenticateRequest(auth_bytes=token)
            told = await connection.send(authenticate, SaslAuthenticateResponse, version=step)
            if told.error_code:
                message = told.error_message or name_of(told.error_code)
                raise AuthenticationError(address, message)
            token = await work(exchange.step, bytes(told.auth_bytes))
            if token is None:
                return float(told.session_lifetime_ms)
    except AuthenticationFailed as error:
        raise AuthenticationError(address, error.reason) from None
    raise AuthenticationError(address, f"{mechanism} came to no end after {STEPS_MAX} messages")


def version_of(request: type[Message], address: Address, versions: ApiRanges, version_min: int = 0) -> int:
    offered = versions.get(request.schema.key or 0)
    found = newest_common(request, offered) if offered is not None else None
    if found is None or found < version_min:
        name = ApiKey(request.schema.key or 0).name
        raise UnsupportedApi(address, name, "the broker does not offer a version that carries SASL tokens")
    return found


def name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"

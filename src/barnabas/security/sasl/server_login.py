"""The login of one connection, server's side: which request may come now, and the response to it.

In: the keys of requests (`admit`), SaslHandshake and SaslAuthenticate by their fields, bare tokens, the time.
Out: verdicts and outcomes. The states, as in Kafka (KIP-43, KIP-152, KIP-368):

    START --ApiVersions--> VERSIONS_KNOWN --SaslHandshake--> EXCHANGE --last token--> DONE
      |                                                     ^   |  ^
      +---------------------SaslHandshake-------------------+   +--+ a token         any failure --> FAILED

A re-authentication begins with the SaslHandshake, in START, on a connection that has a session.
Does not know: frames, versions of messages, sockets, how a refused connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from barnabas.protocol import ApiKey, ErrorCode
from barnabas.security.errors import AuthenticationFailed
from barnabas.security.principal import Principal
from barnabas.security.sasl.mechanism import Identity, ServerExchange
from barnabas.security.sasl.mechanisms import ServerMechanism

BuildPrincipal = Callable[[str, Identity], Principal]
REAUTHENTICATION_MS_MIN = 1_000
NOT_CHECKED = "Authentication failed: the broker could not check the credentials"


class State(Enum):
    START = "start"
    VERSIONS_KNOWN = "versions known"
    EXCHANGE = "exchange"
    DONE = "done"
    FAILED = "failed"


class Verdict(Enum):
    SERVE = "serve"
    ILLEGAL = "illegal"  # respond with ILLEGAL_SASL_STATE, then close
    REFUSE = "refuse"  # close without a response


ALLOWED = {
    State.START: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    State.VERSIONS_KNOWN: (ApiKey.SASL_HANDSHAKE,),
    State.EXCHANGE: (ApiKey.SASL_AUTHENTICATE,),
    State.DONE: (),
    State.FAILED: (),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """The mechanisms of a listener, and how long a session of each may last (0: no limit)."""

    mechanisms: Mapping[str, ServerMechanism]
    session_ms_max: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Session:
    """The outcome of a login. `expires_at_ms` is None if the session has no limit."""

    mechanism: str
    principal: Principal
    expires_at_ms: int | None
    lifetime_ms: int  # as the client is told: 0 if there is no limit


@dataclass(frozen=True, slots=True)
class Shaken:
    """The outcome of a SaslHandshake."""

    error: ErrorCode
    mechanisms: list[str]


class ServerLogin:
    def __init__(
        self, offer: Offer, build_principal: BuildPrincipal, previous: Session | None = None
    ) -> None:
        self._offer = offer
        self._build_principal = build_principal
        self._previous = previous  # set: a re-authentication
        self.state = State.START
        self.mechanism = ""  # chosen by the handshake
        self.is_bare = False  # tokens come without a header, after a SaslHandshake of version 0
        self._exchange: ServerExchange | None = None

    def admit(self, key: int, is_served: bool) -> Verdict:
        """Whether this request may come now. `is_served`: the node knows this API in this version."""
        if key in ALLOWED[self.state] and (is_served or key == ApiKey.API_VERSIONS):
            return Verdict.SERVE
        if self.state is State.EXCHANGE and is_served and not self.is_bare:
            return Verdict.ILLEGAL
        return Verdict.REFUSE

    def versions_told(self) -> None:
        """ApiVersions was responded to without an error."""
        self.state = State.VERSIONS_KNOWN

    def handshake(self, mechanism: str, version: int) -> Shaken:
        """Choose a mechanism. With an error the connection is to be closed after the response."""
        names = list(self._offer.mechanisms)
        found = self._offer.mechanisms.get(mechanism)
        if found is None:
            self.state = State.FAILED
            return Shaken(ErrorCode.UNSUPPORTED_SASL_MECHANISM, names)
        self.mechanism = mechanism
        self.is_bare = version == 0
        self._exchange = found.new_exchange()
        self.state = State.EXCHANGE
        return Shaken(ErrorCode.NONE, names)

    def is_slow(self, token: bytes) -> bool:
        """Whether `step` with this token must run in a thread."""
        return self._offer.mechanisms[self.mechanism].is_slow(token)

    def step(self, token: bytes) -> tuple[bytes, Identity | None]:
        """Feed the client's token. AuthenticationFailed: the connection is to be closed."""
        previous = self._previous
        try:
            if previous is not None and previous.mechanism != self.mechanism:
                raise AuthenticationFailed(
                    f"SASL mechanism '{self.mechanism}' requested by client is not supported for "
                    f"re-authentication of mechanism '{previous.mechanism}'"
                )
            assert self._exchange is not None  # `admit` lets tokens through after a handshake only
            return self._exchange.step(token), self._exchange.identity
        except AuthenticationFailed:
            self.state = State.FAILED
            raise
        except Exception as error:  # a plug-in, or a service that it asks
            self.state = State.FAILED
            raise AuthenticationFailed(NOT_CHECKED, f"{type(error).__name__}: {error}") from error

    def complete(self, identity: Identity, now_ms: int) -> Session:
        """End the login. AuthenticationFailed if a re-authentication changes the principal."""
        self.state = State.FAILED
        try:
            principal = self._build_principal(self.mechanism, identity)
        except AuthenticationFailed:
            raise
        except Exception as error:  # of a plug-in
            raise AuthenticationFailed(NOT_CHECKED, f"{type(error).__name__}: {error}") from error
        previous = self._previous
        if previous is not None and previous.principal != principal:
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from {previous.principal.type}."
                f"{previous.principal.name}: {principal.type}.{principal.name}"
            )
        self.state = State.DONE
        self._exchange = None
        lifetimes_ms = []
        if identity.expires_at_ms is not None:
            lifetimes_ms.append(max(identity.expires_at_ms - now_ms, 0))
        limit_ms = self._offer.session_ms_max.get(self.mechanism, 0)
        if limit_ms > 0:
            lifetimes_ms.append(limit_ms)
        if not lifetimes_ms:
            return Session(self.mechanism, principal, None, 0)
        return Session(self.mechanism, principal, now_ms + min(lifetimes_ms), min(lifetimes_ms))

"""Admits callers: who they are, whether they may, and not too often.

In: the scope of a request and what its route needs. Out: the `Caller`, or ApiError 401, 403, 429. A refusal
takes a moment and reads the same for unknown names and wrong passwords.
Does not know: settings, routes.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from starlette.types import Scope

from barnabas.security.errors import AuthenticationFailed
from barnabas.security.principal import Principal
from barnabas.security.tls.distinguished_names import MappingRules
from barnabas.services.caller import NOBODY, Caller, CredentialKind
from barnabas.services.callers.credentials import Basic, Bearer, parse_authorization
from barnabas.services.callers.rates import Rates
from barnabas.services.callers.rights import Rights
from barnabas.services.callers.tokens import Tokens
from barnabas.services.callers.users import Users
from barnabas.services.error_responses import header_of
from barnabas.services.errors import ApiError
from barnabas.services.exchange import exchange_of
from barnabas.services.routes import Need

PEER_SUBJECT = "barnabas.peer_subject"  # the name in the client's certificate, in the state of the scope
REFUSED_AFTER_S = 0.1
SLOW_CHECKS_MAX = 2  # of hashed passwords at once: each takes a processor for a tenth of a second
WRONG = "HTTP 401 Unauthorized: the name and the password, or the token, are wrong"
MISSING = "HTTP 401 Unauthorized: say who you are"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Methods:
    """How callers prove their names. `asks_brokers`: names and passwords are not checked here, because the
    service logs in at the brokers with them."""

    users: Users | None = None
    tokens: Tokens | None = None
    mapping: MappingRules | None = None  # of names in certificates
    asks_brokers: bool = False
    realm: str = "barnabas"
    open_paths: tuple[str, ...] = ()
    missing: str = MISSING
    wrong: str = WRONG

    @property
    def takes_passwords(self) -> bool:
        return self.users is not None or self.asks_brokers

    @property
    def must_tell(self) -> bool:
        return self.takes_passwords or self.tokens is not None

    @property
    def challenge(self) -> str:
        realm = self.realm.replace('"', "'")
        basic = f'Basic realm="{realm}", charset="UTF-8"' if self.takes_passwords else ""
        bearer = f'Bearer realm="{realm}"' if self.tokens is not None else ""
        return ", ".join(each for each in (basic, bearer) if each)

    def is_open(self, path: str) -> bool:
        return any(
            path.startswith(each[:-1]) if each.endswith("*") else path == each for each in self.open_paths
        )


class CallerGuard:
    def __init__(self, methods: Methods, rights: Rights, rates: Rates) -> None:
        self._methods = methods
        self._rights = rights
        self._rates = rates
        self._slow_checks = asyncio.Semaphore(SLOW_CHECKS_MAX)

    async def __call__(self, scope: Scope, need: Need | None) -> Caller:
        if need is None or self._methods.is_open(scope["path"]):
            return NOBODY
        caller = await self._caller(scope)
        exchange_of(scope).caller = caller  # for the access log, also if the request is refused
        if self._rights.is_bounded:
            self._rights.check(caller, need)
        if self._rates.is_bounded:
            exchange_of(scope).spend = self._rates.enter(rate_key(caller, scope))
        return caller

    async def _caller(self, scope: Scope) -> Caller:
        header = header_of(scope, b"authorization")
        if header and self._methods.must_tell:
            found = await self._proven(parse_authorization(header))
            if found is None:
                await asyncio.sleep(REFUSED_AFTER_S)
                raise self._refusal(self._methods.wrong)
            return found
        subject = scope.get("state", {}).get(PEER_SUBJECT)
        if subject and self._methods.mapping is not None:
            try:
                name = self._methods.mapping.user_name(subject)
            except AuthenticationFailed as error:
                raise ApiError(403, 403, f"HTTP 403 Forbidden: {error.told}") from None
            return Caller(Principal(name), CredentialKind.CERTIFICATE)
        if self._methods.must_tell:
            raise self._refusal(self._methods.missing)
        return NOBODY

    async def _proven(self, given: Basic | Bearer | None) -> Caller | None:
        methods = self._methods
        match given:
            case Basic(name, password) if methods.users is not None:
                if methods.users.is_slow(name, password):
                    async with self._slow_checks:
                        roles = await asyncio.to_thread(methods.users.roles_of, name, password)
                else:
                    roles = methods.users.roles_of(name, password)
                if roles is None:
                    log.info("a password was refused for %r", name[:100])
                    return None
                return Caller(Principal(name), CredentialKind.BASIC, password, roles)
            case Basic(name, password) if methods.asks_brokers:
                return Caller(Principal(name), CredentialKind.BASIC, password)
            case Bearer(token) if methods.tokens is not None:
                identity = await methods.tokens.identity_of(token)
                if identity is None:
                    return None
                return Caller(
                    Principal(identity.name), CredentialKind.BEARER, token, frozenset(identity.scopes)
                )
        return None

    def _refusal(self, message: str) -> ApiError:
        return ApiError(401, 401, message, {"www-authenticate": self._methods.challenge})


def rate_key(caller: Caller, scope: Scope) -> str:
    """Callers without a name are told apart by their address."""
    if caller.kind is not CredentialKind.NONE:
        return caller.principal.name
    client = scope.get("client")
    return f"\0{client[0] if client else ''}"

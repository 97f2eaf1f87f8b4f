"""Callers of the serving process: guests with tokens, or with names and passwords; and the applications.

In: tokens and users. Out: a guard for the frame of services. Without tokens and users everybody may ask,
which is why the process then listens on loopback addresses only. The routes of the layers need the token of
the applications in any case. Does not know: views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from starlette.types import Scope

from barnabas.security.sasl.mechanism import Identity
from barnabas.services.caller import NOBODY, Caller
from barnabas.services.callers.guard import CallerGuard, Methods
from barnabas.services.callers.rates import Rates
from barnabas.services.callers.rights import Rights
from barnabas.services.callers.tokens import KnownTokens
from barnabas.services.callers.users import Users, plain_users
from barnabas.services.routes import Need

GUEST, APPLICATIONS = Identity("guest"), Identity("applications")
WHO = "say who you are: a bearer token, or name and password"
WRONG_TOKEN = "the token is missing or wrong"


@dataclass(frozen=True, slots=True)
class Guests:
    """Clients that may ask. Only digests of secrets are kept."""

    tokens: KnownTokens | None = field(default=None, repr=False)
    users: Users | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        return self.tokens is None and self.users is None


def guests(tokens: Iterable[str] = (), users: Mapping[str, str] | None = None) -> Guests:
    """Empty tokens and passwords would let everybody in: they count as none."""
    known = {token: GUEST for token in tokens if token}
    named = {name: password for name, password in (users or {}).items() if password}
    return Guests(KnownTokens(known) if known else None, plain_users(named) if named else None)


class ServingGuard:
    """Routes that need ADMIN are those of the layers."""

    def __init__(self, allowed: Guests, token: str) -> None:
        self._guests = None if allowed.is_open else guard_of(allowed.tokens, allowed.users, WHO)
        known = KnownTokens({token: APPLICATIONS} if token else {})
        self._applications = guard_of(known, None, WRONG_TOKEN)

    async def __call__(self, scope: Scope, need: Need | None) -> Caller:
        if need is Need.ADMIN:
            return await self._applications(scope, need)
        if need is None or self._guests is None:
            return NOBODY
        return await self._guests(scope, need)


def guard_of(tokens: KnownTokens | None, users: Users | None, refusal: str) -> CallerGuard:
    # Guests may come with either, whichever of both there is.
    methods = Methods(users or plain_users({}), tokens, missing=refusal, wrong=refusal)
    return CallerGuard(methods, Rights(), Rates(0, 0, 1))

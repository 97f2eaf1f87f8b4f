"""The caller of a request: its principal, and the credentials that it sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from starlette.requests import HTTPConnection

from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.services.exchange import exchange_of


class CredentialKind(StrEnum):
    NONE = "none"
    BASIC = "basic"
    BEARER = "bearer"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class Caller:
    """`secret` is the password or the token, for services that log in at the brokers as this caller."""

    principal: Principal = ANONYMOUS
    kind: CredentialKind = CredentialKind.NONE
    secret: str = field(default="", repr=False)
    roles: frozenset[str] = frozenset()


NOBODY = Caller()


def caller_of(request: HTTPConnection) -> Caller:
    """The caller of this request; ANONYMOUS where the service asks nobody for a name."""
    found = exchange_of(request.scope).caller
    return found if isinstance(found, Caller) else NOBODY

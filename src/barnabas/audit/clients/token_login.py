"""Logins with the tokens of a client's own callback.

In: a function that gives a token: (token, seconds, principal, extensions), of which the last three may be
missing. Out: the security of a client of ours that logs in with it. Does not know: where tokens come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.security.clients.client_security import ClientSecurity, client_security
from barnabas.security.errors import AuthenticationFailed
from barnabas.security.sasl.oauthbearer import MECHANISM, OAuthBearerClient, check_extensions

EXTENSIONS_AT = 3

GivesToken = Callable[[], tuple[Any, ...]]


def token_security(properties: Mapping[str, str], give: GivesToken) -> ClientSecurity:
    """`properties` are those of TLS, in Kafka's names, with `security.protocol`."""
    protocol = properties["security.protocol"]
    tls = None
    if protocol.endswith("SSL"):
        tls = client_security({**properties, "security.protocol": "SSL"}).tls
    return ClientSecurity(protocol, tls, MECHANISM, lambda _host: TokenLogin(give))


class TokenLogin(OAuthBearerClient):
    """Asks for a token at each login."""

    is_slow = True  # the callback may ask an identity provider

    def __init__(self, give: GivesToken) -> None:
        super().__init__("")
        self._give = give

    def first(self) -> bytes:
        try:
            given = self._give()
        except Exception as error:  # a callback may raise anything
            raise AuthenticationFailed(f"the token callback failed with {type(error).__name__}") from error
        extensions = given[EXTENSIONS_AT] if len(given) > EXTENSIONS_AT and given[EXTENSIONS_AT] else {}
        problem = check_extensions(extensions)
        if problem is not None:
            raise AuthenticationFailed(f"the token callback: {problem}")
        self._token, self._extensions = str(given[0]), extensions
        return super().first()

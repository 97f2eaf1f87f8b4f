"""How a service logs in at the brokers as its caller.

In: a `Caller` with its credentials, the properties of the service's own client. Out: the `ClientSecurity` of
the caller's client. Does not know: clients, requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.security.clients.client_security import ClientSecurity, client_security, client_tls
from barnabas.security.sasl.jaas import JaasEntry
from barnabas.security.sasl.oauthbearer import OAuthBearerClient
from barnabas.services.caller import Caller, CredentialKind
from barnabas.services.errors import ApiError


def security_of_caller(
    caller: Caller, properties: Mapping[str, str], mechanism: str = "PLAIN"
) -> ClientSecurity:
    """ApiError 401 for a caller without a password or a token: the brokers would not know it."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    secured = "SASL_SSL" if protocol.endswith("SSL") else "SASL_PLAINTEXT"
    own = {**properties, "security.protocol": secured}
    match caller.kind:
        case CredentialKind.BASIC:
            options = {"username": caller.principal.name, "password": caller.secret}
            own |= {"sasl.mechanism": mechanism}
            return client_security(own, JaasEntry("LoginModule", options))
        case CredentialKind.BEARER:
            tls = client_tls(own) if secured == "SASL_SSL" else None
            token = caller.secret
            return ClientSecurity(secured, tls, "OAUTHBEARER", lambda host: OAuthBearerClient(token, {}))
    raise ApiError(
        401,
        401,
        "HTTP 401 Unauthorized: the brokers want to know you; send a name and a password, or a token",
    )

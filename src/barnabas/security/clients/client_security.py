"""How a client secures its connections: made once from Kafka's client properties, used by every face.

In: `security.protocol`, `ssl.*` and `sasl.*` in the names of Kafka's clients. Out: a `ClientSecurity`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import JaasEntry
from barnabas.security.sasl.mechanism import ClientExchange

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LOOKING_NAMES = ("bootstrap.servers", "client.id", "security.protocol")
SECURITY_PREFIXES = ("ssl.", "sasl.", "config.providers")


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    protocol: str = "PLAINTEXT"
    tls: ssl.SSLContext | None = None  # None: no TLS. `check_hostname` says whether names are verified
    mechanism: str = ""  # empty: no SASL
    new_exchange: Callable[[str], ClientExchange] | None = None  # for a login at the broker with this host


PLAINTEXT = ClientSecurity()


def client_security(
    properties: Mapping[str, str],
    jaas: JaasEntry | None = None,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> ClientSecurity:
    """The security of a client with these properties. SecuritySettingsError names a setting that is wrong.

    `jaas` takes the place of `sasl.jaas.config`: nodes find their entries elsewhere. A simulation has random
    bytes of its own.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise SecuritySettingsError(
            f"security.protocol={protocol} is unknown: expected one of {', '.join(PROTOCOLS)}"
        )
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    tls = client_tls(properties) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return ClientSecurity(protocol, tls)
    from barnabas.security.clients.client_sasl import client_sasl  # a client without SASL needs none of it

    mechanism, new_exchange = client_sasl(properties, jaas, random_bytes)
    return ClientSecurity(protocol, tls, mechanism, new_exchange)


def ignored_properties(properties: Mapping[str, str]) -> list[str]:
    """A sentence for each property that a service which only looks at a cluster does not read."""
    from difflib import get_close_matches  # needed only here, and slow to import

    found = []
    for name in sorted(properties):
        if name not in LOOKING_NAMES and not name.startswith(SECURITY_PREFIXES):
            close = get_close_matches(name, LOOKING_NAMES, n=1, cutoff=0.8)
            found.append(f"{name} has no effect" + (f"; did you mean {close[0]}?" if close else ""))
    return found


def client_tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS context of a client, from its `ssl.*` properties."""
    from barnabas.security.tls.contexts import client_context, tls_settings  # a client without TLS needs none

    return client_context(tls_settings(properties.get))

"""The SASL half of a client's security: the mechanism that its properties name, ready to log in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from barnabas.security.clients.jaas_file import entry_in, read_jaas_file
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import JaasEntry, parse_jaas
from barnabas.security.sasl.mechanism import ClientExchange
from barnabas.security.sasl.mechanisms import ClientConfig, client_mechanism

MECHANISM_DEFAULT = "GSSAPI"
SECTION = "KafkaClient"


def client_sasl(
    properties: Mapping[str, str],
    jaas: JaasEntry | None = None,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> tuple[str, Callable[[str], ClientExchange]]:
    """The mechanism's name, and a function that makes the exchange of each login at a broker with a host.

    `jaas` takes the place of `sasl.jaas.config` and of the JAAS file: nodes have their own sources.
    """
    mechanism = properties.get("sasl.mechanism") or MECHANISM_DEFAULT
    config = ClientConfig(
        mechanism=mechanism,
        properties=properties,
        jaas=jaas or jaas_entry(properties, mechanism),
        random_bytes=random_bytes,
        now_ms=lambda: int(time.time() * 1000),
    )
    return mechanism, client_mechanism(config)


def jaas_entry(properties: Mapping[str, str], mechanism: str) -> JaasEntry | None:
    text = properties.get("sasl.jaas.config")
    if text is None:
        return entry_in(read_jaas_file(), (SECTION,), mechanism)
    try:
        return parse_jaas(text)
    except SecuritySettingsError as error:
        raise SecuritySettingsError(f"sasl.jaas.config: {error}") from None

"""The login of a client of kafka-python or aiokafka, so that its counter reaches the brokers as it does.

In: keywords of the client. Out: the settings of its counter, with the same mechanism, users and certificates.
Does not know: counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from barnabas.audit.clients.librdkafka_login import text_of
from barnabas.audit.clients.token_login import token_security
from barnabas.audit.counters.audit_counter import AuditSettings
from barnabas.security.clients.client_security import ClientSecurity, client_security
from barnabas.security.sasl.jaas import JaasEntry

BEARER = "OAUTHBEARER"
MECHANISM_DEFAULT = "PLAIN"
GSSAPI = "GSSAPI"
TOKEN_S_MAX = 30.0
TLS_NAMES = {"ssl_cafile": "ssl.truststore.location", "ssl_password": "ssl.key.password"}


def settings_of_keywords(configs: Mapping[str, Any]) -> AuditSettings:
    return AuditSettings.with_login(configs, login_of_keywords(configs))


def login_of_keywords(configs: Mapping[str, Any]) -> ClientSecurity | None:
    """The security of our connections for this client; None if it has none. SecuritySettingsError."""
    protocol = str(configs.get("security_protocol") or "PLAINTEXT").upper()
    if protocol == "PLAINTEXT":
        return None
    context = configs.get("ssl_context") if protocol.endswith("SSL") else None
    # With a context of its own, nothing of TLS needs to be read.
    properties = {
        "security.protocol": protocol.replace("SASL_SSL", "SASL_PLAINTEXT") if context else protocol
    }
    if context is None:
        properties |= tls_properties(configs)
    elif protocol == "SSL":
        return ClientSecurity(protocol, context)
    if protocol == "SSL":
        return client_security(properties)
    found = login(properties, configs)
    return found if context is None else replace(found, protocol=protocol, tls=context)


def tls_properties(configs: Mapping[str, Any]) -> dict[str, str]:
    found = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    found |= {kafkas: str(configs[name]) for name, kafkas in TLS_NAMES.items() if configs.get(name)}
    if configs.get("ssl_certfile"):
        chain = str(configs["ssl_certfile"])
        found["ssl.keystore.certificate.chain"] = text_of("ssl_certfile", chain)
        found["ssl.keystore.key"] = text_of("ssl_keyfile", str(configs.get("ssl_keyfile") or chain))
    if configs.get("ssl_check_hostname") is False:
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def login(properties: Mapping[str, str], configs: Mapping[str, Any]) -> ClientSecurity:
    mechanism = str(configs.get("sasl_mechanism") or MECHANISM_DEFAULT)
    if mechanism == BEARER:
        return token_security(properties, tokens_of(configs.get("sasl_oauth_token_provider")))
    options: dict[str, str] = {}
    named = dict(properties) | {"sasl.mechanism": mechanism}
    if mechanism == GSSAPI:
        named["sasl.kerberos.service.name"] = str(configs.get("sasl_kerberos_service_name") or "kafka")
    else:
        for option in ("username", "password"):
            value = configs.get(f"sasl_plain_{option}")
            if value is not None:
                options[option] = str(value)
    return client_security(named, JaasEntry("keywords", options))


def tokens_of(provider: Any) -> Callable[[], tuple[Any, ...]]:
    """A function that asks a token provider. One of aiokafka is asked on the event loop of its client."""
    loop: asyncio.AbstractEventLoop | None = None
    with contextlib.suppress(RuntimeError):
        loop = asyncio.get_running_loop()

    def give() -> tuple[Any, ...]:
        token = provider.token()
        if inspect.isawaitable(token):
            token = awaited(token, loop)
        extensions = provider.extensions() if hasattr(provider, "extensions") else None
        return token, None, None, extensions

    return give


def awaited(found: Any, loop: asyncio.AbstractEventLoop | None) -> Any:
    async def wait() -> Any:
        return await found

    if loop is None or loop.is_closed():
        return asyncio.run(wait())
    return asyncio.run_coroutine_threadsafe(wait(), loop).result(TOKEN_S_MAX)

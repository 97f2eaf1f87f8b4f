"""OAUTHBEARER as a mechanism of listeners and clients (`security.sasl.mechanisms`).

A plug-in takes the place of Kafka's check: `sasl.server.callback.handler.class=package.module:name` names a
function that returns the `Identity` of a token or raises `TokenRefused`. It is called in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.security.entry_points import load_entry_point
from barnabas.security.oauth.checking import HANDLER, token_check
from barnabas.security.oauth.login import client_exchanges
from barnabas.security.sasl.mechanism import ClientExchange, Identity
from barnabas.security.sasl.mechanisms import ClientConfig, ServerConfig, ServerMechanism
from barnabas.security.sasl.oauthbearer import OAuthBearerServer

SERVER_SETTINGS = (
    HANDLER,
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
)


def server_mechanism(config: ServerConfig) -> ServerMechanism:
    handler = text_of(config.settings[HANDLER])
    if ":" in handler:
        plug_in: Callable[[str], Identity] = load_entry_point(handler)
        return ServerMechanism(lambda: OAuthBearerServer(plug_in), is_slow=lambda _: True)
    check = token_check(
        {name: text_of(config.settings[name]) for name in SERVER_SETTINGS},
        config.jaas.options if config.jaas is not None else {},
        lambda: config.now_ms() / 1000,
    )
    return ServerMechanism(lambda: OAuthBearerServer(check), is_slow=lambda _: check.is_slow)


def client_mechanism(config: ClientConfig) -> Callable[[str], ClientExchange]:
    options: Mapping[str, str] = config.jaas.options if config.jaas is not None else {}
    return client_exchanges(config.properties, options)


def text_of(value: Any) -> str:
    if value is None:
        return ""
    return ",".join(value) if isinstance(value, tuple | list) else str(value)

"""Both sides of a login without a network, and credentials for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.security.sasl.jaas import JaasEntry
from barnabas.security.sasl.mechanism import ClientExchange, ServerExchange
from barnabas.security.sasl.mechanisms import (
    ClientConfig,
    ServerConfig,
    ServerMechanism,
    StoredKeys,
    TokenLogin,
    client_mechanism,
    server_mechanism,
)
from barnabas.security.sasl.scram_messages import ALGORITHMS, salted_password, stored_keys


def some_bytes(count: int) -> bytes:
    return bytes(range(count))


@dataclass
class Credentials:
    keys: dict[tuple[str, str], StoredKeys] = field(default_factory=dict)
    tokens: dict[str, TokenLogin] = field(default_factory=dict)
    decoy_secret: bytes = b"decoy"

    def scram_keys(self, mechanism: str, user: str) -> StoredKeys | None:
        return self.keys.get((mechanism, user))

    def token(self, token_id: str) -> TokenLogin | None:
        return self.tokens.get(token_id)

    def add(
        self, mechanism: str, user: str, password: str, salt: bytes = b"salt", iterations: int = 4096
    ) -> None:
        algorithm = ALGORITHMS[mechanism]
        salted = salted_password(algorithm, password, salt, iterations)
        self.keys[mechanism, user] = stored_keys(algorithm, salted, salt, iterations)


def server(
    mechanism: str,
    credentials: Credentials | None = None,
    options: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ServerMechanism:
    return server_mechanism(
        ServerConfig(
            listener="CLIENTS",
            mechanism=mechanism,
            settings={"sasl.server.callback.handler.class": None, **(settings or {})},
            jaas=None if options is None else JaasEntry("SomeLoginModule", options),
            credentials=credentials or Credentials(),
            random_bytes=some_bytes,
            now_ms=lambda: 1_000,
        )
    )


def client(mechanism: str, **options: str) -> ClientExchange:
    config = ClientConfig(mechanism, {}, JaasEntry("SomeLoginModule", options), some_bytes, lambda: 1_000)
    return client_mechanism(config)("broker.example")


def log_in(client: ClientExchange, server: ServerExchange) -> int:
    """Run both sides against each other; how many messages the client sent."""
    token: bytes | None = client.first()
    sent = 0
    while token is not None:
        sent += 1
        token = client.step(server.step(token))
    return sent

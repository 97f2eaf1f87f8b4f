"""The mechanisms by name, and what each gets to make its exchanges.

A mechanism is a module with `server_mechanism(ServerConfig) -> ServerMechanism`, called once for a listener
and again when its settings change, and `client_mechanism(ClientConfig) -> new_exchange`, called once for a
client. Modules are imported when a listener or a client names their mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import JaasEntry
from barnabas.security.sasl.mechanism import ClientExchange, ServerExchange

MODULES = {
    "PLAIN": "barnabas.security.sasl.plain",
    "SCRAM-SHA-256": "barnabas.security.sasl.scram",
    "SCRAM-SHA-512": "barnabas.security.sasl.scram",
    "OAUTHBEARER": "barnabas.security.oauth.mechanism",
    "GSSAPI": "barnabas.security.sasl.gssapi",
}


class Values(Protocol):
    """The settings of a listener and a mechanism by name (`settings.listener_settings`)."""

    def __getitem__(self, name: str) -> Any: ...


def never(message: bytes) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ServerMechanism:
    """A mechanism as a listener offers it."""

    new_exchange: Callable[[], ServerExchange]
    is_slow: Callable[[bytes], bool] = never  # whether the step with this message must run in a thread


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The server's record of a SCRAM password (RFC 5802)."""

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A delegation token as SCRAM needs it."""

    owner: str
    hmac: str = field(repr=False)  # in base64: the password
    expires_at_ms: int


class CredentialStore(Protocol):
    """Users and tokens of the cluster: read at each login, so that changes count at once."""

    def scram_keys(self, mechanism: str, user: str) -> StoredKeys | None: ...

    def token(self, token_id: str) -> TokenLogin | None: ...

    @property
    def decoy_secret(self) -> bytes:
        """The same on every node: makes salts of users that do not exist."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    listener: str
    mechanism: str
    settings: Values
    jaas: JaasEntry | None
    credentials: CredentialStore
    random_bytes: Callable[[int], bytes]
    now_ms: Callable[[], int]

    def lacks_jaas(self, contents: str) -> str:
        name = f"listener.name.{self.listener.lower()}.{self.mechanism.lower()}.sasl.jaas.config"
        return (
            f"listener {self.listener} offers {self.mechanism} and has no JAAS entry for it: set {name} with "
            f"{contents}, or a section {self.listener.lower()}.KafkaServer or KafkaServer of a JAAS file "
            "(barnabas.jaas.file)"
        )


@dataclass(frozen=True, slots=True)
class ClientConfig:
    mechanism: str
    properties: Mapping[str, str] = field(repr=False)  # all of the client's
    jaas: JaasEntry | None
    random_bytes: Callable[[int], bytes]
    now_ms: Callable[[], int]

    def option(self, name: str) -> str:
        """An option of the JAAS entry that must be there."""
        if self.jaas is None:
            raise SecuritySettingsError(
                f'{self.mechanism} needs sasl.jaas.config, such as `some.LoginModule required {name}="...";`'
            )
        found = self.jaas.options.get(name)
        if not found:
            raise SecuritySettingsError(
                f"the JAAS entry of {self.mechanism} lacks the option {name}: add it to sasl.jaas.config"
            )
        return found


def server_mechanism(config: ServerConfig) -> ServerMechanism:
    made: ServerMechanism = module_of(config.mechanism).server_mechanism(config)
    return made


def client_mechanism(config: ClientConfig) -> Callable[[str], ClientExchange]:
    """Makes the exchange of each login at a broker with the given host."""
    made: Callable[[str], ClientExchange] = module_of(config.mechanism).client_mechanism(config)
    return made


def module_of(mechanism: str) -> Any:
    path = MODULES.get(mechanism)
    if path is None:
        raise SecuritySettingsError(
            f"the SASL mechanism {mechanism} is not supported: expected one of {', '.join(MODULES)}"
        )
    return import_module(path)

"""Principals made from what a connection proved: Kafka's default, or a Python entry point.

`principal.builder.class=package.module:name` names a function, or a class without arguments whose instances
can be called: `name(peer) -> Principal`. It runs on the event loop for every login, so it must be quick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.security.entry_points import load_entry_point
from barnabas.security.errors import AuthenticationFailed
from barnabas.security.principal import ANONYMOUS, Principal

DEFAULT = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


@dataclass(frozen=True, slots=True)
class Peer:
    """Knowledge about a connection when its handshakes are done."""

    listener: str
    host: str
    name: str = (
        ""  # of the user, by SASL or from the certificate by `ssl.principal.mapping.rules`; "": nobody
    )
    mechanism: str = ""  # of SASL
    is_token: bool = False  # logged in with a delegation token of this user
    subject: str = ""  # the distinguished name of the client's certificate


BuildPrincipal = Callable[[Peer], Principal]


def default_principal(peer: Peer) -> Principal:
    return Principal(peer.name, is_token=peer.is_token) if peer.name else ANONYMOUS


def principal_builder(class_name: str | None) -> BuildPrincipal:
    """The builder that the setting names. SecuritySettingsError if it cannot be loaded."""
    if not class_name or class_name == DEFAULT:
        return default_principal
    loaded = load_entry_point(class_name)
    build: Callable[[Peer], object] = loaded() if isinstance(loaded, type) else loaded

    def checked(peer: Peer) -> Principal:
        found = build(peer)
        if not isinstance(found, Principal):
            raise AuthenticationFailed(
                "Authentication failed: no principal", f"{class_name} made no Principal, but {found!r}"
            )
        return found

    return checked

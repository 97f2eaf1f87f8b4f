"""Properties of the clients with which a service talks to the brokers.

In: `ServiceSettings`. Out: properties in the names of Kafka's clients, with `bootstrap.servers`.
Does not know: clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.errors import SettingsError

PROTOCOL = "security.protocol"
BOOTSTRAP = "bootstrap.servers"
REST_KINDS = ("producer", "consumer", "admin")


def registry_client(settings: ServiceSettings) -> dict[str, str]:
    """The client of the registry: everything below `kafkastore.` that is no setting of the registry."""
    found = settings.below("kafkastore.")
    found = {name: text for name, text in found.items() if not name.startswith("topic.config.")}
    found[PROTOCOL] = settings["kafkastore.security.protocol"]
    name = "kafkastore.bootstrap.servers"
    return {**found, BOOTSTRAP: addresses(name, settings[name], found[PROTOCOL])}


def rest_client(settings: ServiceSettings, kind: str) -> dict[str, str]:
    """A client of the proxy: `client.*`, and what its kind sets otherwise."""
    if kind not in REST_KINDS:
        raise ValueError(f"{kind} is none of {', '.join(REST_KINDS)}")
    found = {**settings.below("client."), **settings.below(f"{kind}.")}
    protocol = found.setdefault(PROTOCOL, "PLAINTEXT")
    servers = settings["bootstrap.servers"]
    return {**found, BOOTSTRAP: addresses("bootstrap.servers", servers, protocol)}


def plain_client(settings: ServiceSettings) -> dict[str, str]:
    """The client of a service that has one: everything below `client.`."""
    found = settings.below("client.")
    protocol = found.setdefault(PROTOCOL, "PLAINTEXT")
    servers = settings["bootstrap.servers"]
    return {**found, BOOTSTRAP: addresses("bootstrap.servers", servers, protocol)}


def sql_client(settings: ServiceSettings) -> dict[str, str]:
    """The client of the SQL server: properties of clients that stand alone, below `ksql.streams.`, and below
    `client.`; later ones win. Settings of the listeners' TLS are none of them."""
    found = {
        name: text
        for name, text in settings.given.items()
        if name.startswith(("security.", "sasl.", "ssl.")) and not settings.knows(name)
    }
    streams = {
        name: text
        for name, text in settings.below("ksql.streams.").items()
        if name.startswith(("security.", "sasl.", "ssl.", "client."))
    }
    found |= streams | settings.below("client.")
    protocol = found.setdefault(PROTOCOL, "PLAINTEXT")
    if protocol.upper() in ("SSL", "SASL_SSL"):  # the same stores as the listeners', as in ksqlDB's files
        for name, text in settings.given.items():
            if name.startswith("ssl.") and settings.knows(name) and "client.auth" not in name:
                found.setdefault(name, text)
    servers = settings["bootstrap.servers"]
    return {**found, BOOTSTRAP: addresses("bootstrap.servers", servers, protocol)}


def registry_topic(settings: ServiceSettings) -> dict[str, str]:
    """Settings of the registry's topic when it is created."""
    return settings.below("kafkastore.topic.config.")


def addresses(name: str, servers: Sequence[str], protocol: str) -> str:
    """host:port of each server. Of servers with a protocol in front, those with another one are left out."""
    found = []
    for server in servers:
        prefix, scheme, rest = server.rpartition("://")
        if not scheme or prefix.upper() == protocol.upper():
            found.append(rest)
    if not found:
        raise SettingsError(
            f"{name}: no server has the protocol {protocol}, which the clients use", name=name
        )
    return ",".join(found)

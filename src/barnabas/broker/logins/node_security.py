"""How this node secures its connections to other nodes: one place for brokers and controllers.

A node that connects to a listener of another node is a client with the settings of its own listener of that
name: its JAAS entry (`username`, `password`), its key and trust stores. Brokers use
`inter.broker.listener.name` with `sasl.mechanism.inter.broker.protocol`. The way to controllers is the first
of `controller.listener.names` with `sasl.mechanism.controller.protocol`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.logins.jaas_entries import JaasEntries
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity, client_security
from barnabas.security.errors import SecuritySettingsError
from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.listener_settings import CLIENT_PREFIXES, ListenerSettings

if TYPE_CHECKING:
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.logins")
SETTINGS = tuple(name for name in BROKER_ROWS if name.startswith(CLIENT_PREFIXES))


class NodeSecurity:
    """Made once a node. A change of settings counts for connections that are made afterwards."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self.entries = JaasEntries(settings)
        self.random_bytes: Callable[[int], bytes] = os.urandom  # the node sets its own
        self._made: dict[str, ClientSecurity] = {}

    def to_brokers(self) -> ClientSecurity:
        """SecuritySettingsError if the settings of the inter-broker listener cannot be used."""
        settings = self._settings
        mechanism: str = settings["sasl.mechanism.inter.broker.protocol"]
        return self._to(settings.inter_broker_listener_name, mechanism)

    def to_controllers(self) -> ClientSecurity:
        """SecuritySettingsError if the settings of the controllers' listener cannot be used."""
        settings = self._settings
        names = settings.controller_listener_names
        mechanism: str = settings["sasl.mechanism.controller.protocol"]
        return self._to(names[0], mechanism) if names else PLAINTEXT

    def change(self, before: BrokerSettings, after: BrokerSettings) -> None:
        self._settings = after
        self._made.clear()

    def warn(self) -> None:
        """Log at the start what would keep this node from logging in at others."""
        ways = [self.to_controllers, *([self.to_brokers] if self._settings.is_broker else [])]
        for way in ways:
            try:
                way()
            except SecuritySettingsError as error:
                log.warning("this node cannot connect to other nodes: %s", error)
        for listener, mechanism in self._plain_logins():
            entry = self.entries.of(ListenerSettings(self._settings, listener, mechanism))
            options = entry.options if entry is not None else {}
            user = options.get("username")
            if user and options.get(f"user_{user}") != options.get("password"):
                log.warning(
                    "nodes with this JAAS entry of listener %s refuse each other: "
                    'add user_%s="..." with the password of the entry itself',
                    listener,
                    user,
                )

    def _plain_logins(self) -> list[tuple[str, str]]:
        """Listeners at which nodes log in with PLAIN, checked against the users of the entry itself."""
        settings = self._settings
        ways = [(settings.inter_broker_listener_name, "inter.broker")]
        ways += [(name, "controller") for name in settings.controller_listener_names[:1]]
        return [
            (listener, "PLAIN")
            for listener, kind in ways
            if settings.security_protocols.get(listener, "").startswith("SASL")
            and settings[f"sasl.mechanism.{kind}.protocol"] == "PLAIN"
            and not ListenerSettings(settings, listener, "PLAIN")["sasl.server.callback.handler.class"]
        ]

    def _to(self, listener: str, mechanism: str) -> ClientSecurity:
        found = self._made.get(listener)
        if found is None:
            found = self._made[listener] = self._make(listener, mechanism)
        return found

    def _make(self, listener: str, mechanism: str) -> ClientSecurity:
        protocol = self._settings.security_protocols.get(listener, "PLAINTEXT")
        if protocol == "PLAINTEXT":
            return PLAINTEXT
        uses_sasl = protocol.startswith("SASL")
        own = ListenerSettings(self._settings, listener, mechanism if uses_sasl else "")
        properties = own.client_properties()
        properties.update({"security.protocol": protocol, "sasl.mechanism": mechanism})
        properties.pop("sasl.jaas.config", None)
        try:
            entry = self.entries.of(own) if uses_sasl else None
            return client_security(properties, entry, self.random_bytes)
        except SecuritySettingsError as error:
            raise SecuritySettingsError(f"listener {listener} with {mechanism}: {error}") from None

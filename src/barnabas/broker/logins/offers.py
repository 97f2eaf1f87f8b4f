"""Offers: the SASL mechanisms of each listener, made from its settings.

In: settings with Kafka's precedence, a JAAS file, credentials. Out: an `Offer` for a listener, made again
when its settings change. A change that cannot be used is logged, and the listener keeps its offer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.logins.credentials import ClusterCredentials
from barnabas.broker.logins.jaas_entries import JaasEntries
from barnabas.broker.logins.node_security import SETTINGS as NODE_SETTINGS
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.principal_builder import BuildPrincipal, principal_builder
from barnabas.security.sasl.mechanisms import CredentialStore, ServerConfig, server_mechanism
from barnabas.security.sasl.server_login import Offer
from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.listener_settings import ListenerSettings

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.image import MetadataImage
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.logins")
SETTINGS = (
    "principal.builder.class",
    "connections.max.reauth.ms",
    *(name for name in BROKER_ROWS if name.startswith("sasl.")),
)


def prepare_logins(
    broker: Broker, image: Callable[[], MetadataImage], random_bytes: Callable[[int], bytes]
) -> Offers:
    """The offers of a node that starts. SecuritySettingsError if those of a listener cannot be made."""
    settings = broker.settings
    credentials = ClusterCredentials(settings, broker.cluster_id, image)
    offers = Offers(settings, broker.security.entries, credentials, broker.clock.now_ms, random_bytes)
    for endpoint in settings.listeners:
        offers.principal_builder(endpoint.name)
        if endpoint.security_protocol.startswith("SASL"):
            offers.of(endpoint.name)
    broker.dynamic.on_change(SETTINGS, offers.change)
    broker.dynamic.on_change(NODE_SETTINGS, broker.security.change)
    broker.dynamic.checks.append(offers.check)
    broker.security.random_bytes = random_bytes
    broker.security.warn()
    return offers


class Offers:
    """All listeners' offers. `of` makes one when it is first needed."""

    def __init__(
        self,
        settings: BrokerSettings,
        entries: JaasEntries,
        credentials: CredentialStore,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._entries = entries
        self._offers: dict[str, Offer] = {}
        self._builders: dict[str, BuildPrincipal] = {}

    def of(self, listener: str) -> Offer:
        """The offer of a listener. SecuritySettingsError if its settings are wrong."""
        found = self._offers.get(listener)
        if found is None:
            found = self._offers[listener] = self._make(self._settings, listener)
        return found

    def principal_builder(self, listener: str) -> BuildPrincipal:
        found = self._builders.get(listener)
        if found is None:
            name = ListenerSettings(self._settings, listener)["principal.builder.class"]
            found = self._builders[listener] = principal_builder(name)
        return found

    async def check(self, after: BrokerSettings) -> None:
        """Refuse changed settings that a listener could not use: INVALID_REQUEST."""
        for endpoint in after.listeners:
            try:
                principal_builder(ListenerSettings(after, endpoint.name)["principal.builder.class"])
                if endpoint.security_protocol.startswith("SASL"):
                    self._make(after, endpoint.name)
            except SecuritySettingsError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None

    def change(self, before: BrokerSettings, after: BrokerSettings) -> None:
        """Use changed settings for logins from now on."""
        self._settings = after
        self._builders.clear()
        for listener in list(self._offers):
            try:
                self._offers[listener] = self._make(after, listener)
            except SecuritySettingsError as error:
                log.error("listener %s goes on with its former SASL settings: %s", listener, error)

    def _make(self, settings: BrokerSettings, listener: str) -> Offer:
        names: tuple[str, ...] = ListenerSettings(settings, listener)["sasl.enabled.mechanisms"]
        if not names:
            raise SecuritySettingsError(
                f"listener {listener} uses SASL, and sasl.enabled.mechanisms is empty"
            )
        mechanisms, limits = {}, {}
        for name in names:
            own = ListenerSettings(settings, listener, name)
            config = ServerConfig(
                listener=listener,
                mechanism=name,
                settings=own,
                jaas=self._entries.of(own),
                credentials=self._credentials,
                random_bytes=self._random_bytes,
                now_ms=self._now_ms,
            )
            mechanisms[name] = server_mechanism(config)
            limits[name] = own["connections.max.reauth.ms"]
        return Offer(mechanisms, limits)

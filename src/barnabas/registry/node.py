"""A node of the registry below its API: the state, the log that it follows, its seat, and writes.

In: settings of the service. Out: `state` to read, `changes` to write with, and why the node is not ready.
Brokers that are gone for a while stop writes alone: the state stays, and the log is followed again when they
are back. Does not know: routes, sockets of HTTP.
"""

from __future__ import annotations

import logging
import socket

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.registry.election.forwarding import Forwarder, ForwardingSettings
from barnabas.registry.election.identity import Identity
from barnabas.registry.election.primary_changes import PrimaryChanges
from barnabas.registry.election.seat import ElectionSettings, Seat
from barnabas.registry.log.schema_log import LogSettings, SchemaLog
from barnabas.registry.log.topic import TopicSettings
from barnabas.registry.state.config import Config, Level
from barnabas.registry.state.state import State
from barnabas.security.clients.client_security import client_security, client_tls
from barnabas.services.settings.client_properties import BOOTSTRAP, registry_client, registry_topic
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.errors import SettingsError

log = logging.getLogger("barnabas.registry")

CLIENT_ID = "schema-registry"
ANY_HOST = ("0.0.0.0", "::", "")


class RegistryNode:
    def __init__(self, settings: ServiceSettings) -> None:
        properties = registry_client(settings)
        self.cluster = Cluster(
            parse_bootstrap(properties[BOOTSTRAP]),
            client_id=properties.get("client.id", CLIENT_ID),
            security=client_security(properties),
            waits_for_bootstrap=True,
        )
        self.group_id: str = settings["schema.registry.group.id"]
        self.state = State(
            Config(
                level=Level(settings["schema.compatibility.level"].upper()),
                validate_new_schemas=None if settings["schema.validate.new.schemas"] else False,
            )
        )
        self._log = SchemaLog(self.cluster, log_settings(settings), self.state)
        self.seat = Seat(
            self.cluster,
            ElectionSettings(
                self.group_id,
                settings["kafkagroup.session.timeout.ms"],
                settings["kafkagroup.rebalance.timeout.ms"],
                settings["kafkagroup.heartbeat.interval.ms"],
            ),
            identity(settings),
            lambda: self.changes.election_changed(),
        )
        self._forwarder = Forwarder(forwarding_settings(settings))
        self.changes = PrimaryChanges(self.seat, self._log, self._forwarder)

    @property
    def kafka_cluster_id(self) -> str:
        return self.cluster.topology.cluster_id or ""

    @property
    def next_offset(self) -> int:
        """Records before it are applied."""
        return self._log.next_offset

    async def start(self) -> None:
        """Read the log, then take part in elections."""
        try:
            await self._log.start()
        except BaseException:
            await self.stop()
            raise
        self.seat.start()
        log.info("this node is %s in the group %s", self.seat.identity.url, self.group_id)

    async def stop(self) -> None:
        await self.seat.stop()
        await self.changes.close()
        await self._forwarder.close()
        await self._log.stop()
        await self.cluster.close()

    def why_not_ready(self) -> str | None:
        """The reason why requests should go to another node."""
        return self._log.why_not_ready() or self.seat.problem


def log_settings(settings: ServiceSettings) -> LogSettings:
    topic = TopicSettings(
        settings["kafkastore.topic"],
        settings["kafkastore.topic.replication.factor"],
        registry_topic(settings),
        not settings["kafkastore.topic.skip.validation"],
    )
    return LogSettings(topic, settings["kafkastore.timeout.ms"], settings["kafkastore.init.timeout.ms"])


def forwarding_settings(settings: ServiceSettings) -> ForwardingSettings:
    is_secure = own_listener(settings).has_tls
    properties = {name: text for name, text in settings.given.items() if name.startswith("ssl.")}
    return ForwardingSettings(
        settings["leader.connect.timeout.ms"],
        settings["leader.read.timeout.ms"],
        client_tls(properties) if is_secure else None,
        tuple(settings["inter.instance.headers.whitelist"]),
    )


def identity(settings: ServiceSettings) -> Identity:
    """This node as the others reach it: `host.name`, else the listener's host, else the machine's name."""
    listener = own_listener(settings)
    host = settings["host.name"] or (socket.gethostname() if listener.host in ANY_HOST else listener.host)
    return Identity(listener.scheme, host, listener.port, settings["leader.eligibility"])


def own_listener(settings: ServiceSettings) -> Listener:
    """The listener that other nodes use: with `inter.instance.protocol` if that is set, else the first."""
    name = "inter.instance.protocol"
    for listener in settings.listeners:
        if listener.scheme == settings[name] or not settings.is_set(name):
            return listener
    raise SettingsError(f"{name}={settings[name]}, but no listener has that protocol", name=name)

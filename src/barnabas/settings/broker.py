"""A node's settings: parsed and checked `server.properties`, and dynamic settings.

In: names and texts of a properties file, later dynamic changes. Out: `BrokerSettings` with typed values by
Kafka's names, listeners and quorum as values, and warnings for unknown names.
Does not know: files, the environment, metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.settings.checks import check_together
from barnabas.settings.classes import KNOWN, WITHOUT_EFFECT, check_classes
from barnabas.settings.definitions import BROKER_ROWS, broker_defaults
from barnabas.settings.errors import SettingsError
from barnabas.settings.listener_settings import ListenerSettings
from barnabas.settings.listeners import (
    EndPoint,
    parse_connection_overrides,
    parse_end_points,
    parse_protocol_map,
)
from barnabas.settings.names import LISTENER_PREFIX, listener_base_name, warning_for
from barnabas.settings.quorum import parse_bootstrap_servers, parse_voters
from barnabas.settings.synonyms import BROKER_SYNONYMS
from barnabas.settings.tables.row import READ_ONLY, Setting
from barnabas.settings.topic import broker_topic_defaults
from barnabas.settings.validators import check_value
from barnabas.settings.values import Value, parse_value

NOTHING: Mapping[str, str] = {}


class BrokerSettings:
    """Immutable by convention: `with_dynamic` returns a new object with dynamic changes."""

    __slots__ = (
        "advertised_controller_listeners",
        "advertised_listeners",
        "bootstrap_servers",
        "broker_listeners",
        "controller_listener_names",
        "controller_listeners",
        "dynamic_broker",
        "dynamic_default",
        "inter_broker_listener_name",
        "listeners",
        "log_dirs",
        "max_connections_per_ip_overrides",
        "node_id",
        "roles",
        "security_protocols",
        "static",
        "topic_defaults",
        "values",
        "voters",
        "warnings",
    )

    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_default: Mapping[str, str] = NOTHING,
        dynamic_broker: Mapping[str, str] = NOTHING,
    ) -> None:
        self.static = dict(static)
        self.dynamic_default = dict(dynamic_default)
        self.dynamic_broker = dict(dynamic_broker)
        self.warnings: list[str] = []
        self.values: dict[str, Any] = self._parse()
        self.node_id: int = self.values["node.id"]
        self.roles: frozenset[str] = frozenset(self.values["process.roles"])
        self.log_dirs: tuple[str, ...] = self.values["log.dirs"] or self.values["log.dir"]
        self.voters = parse_voters(self.values["controller.quorum.voters"])
        self.bootstrap_servers = parse_bootstrap_servers(self.values["controller.quorum.bootstrap.servers"])
        self.max_connections_per_ip_overrides = parse_connection_overrides(
            "max.connections.per.ip.overrides", self.values["max.connections.per.ip.overrides"]
        )
        self.topic_defaults = broker_topic_defaults(self.values)
        self._lay_out_listeners()
        check_together(self)

    @classmethod
    def load(cls, props: Mapping[str, str]) -> BrokerSettings:
        """Load a node's properties. SettingsError names the wrong setting and the allowed values."""
        static = dict(props)
        if "node.id" not in static and "broker.id" in static:
            static["node.id"] = static["broker.id"]
        elif "broker.id" not in static and "node.id" in static:
            static["broker.id"] = static["node.id"]
        return cls(static)

    def with_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> BrokerSettings:
        """The settings with dynamic changes: cluster-wide defaults, overridden by those of this broker.

        Never fails: dynamic settings that are not valid any more are ignored with a warning.
        """
        layers = [dict(default), dict(broker)]
        ignored: list[str] = []
        while True:
            try:
                found = BrokerSettings(self.static, *layers)
            except SettingsError as error:
                ignored.append(f"Dynamic settings are ignored: {error}")
                if not any(error.name in layer for layer in layers):
                    layers = [{}, {}]
                for layer in layers:
                    layer.pop(error.name, None)
            else:
                found.warnings += ignored
                return found

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def is_set(self, name: str) -> bool:
        """Whether the setting has a value in the file or a dynamic value."""
        return name in self.static or name in self.dynamic_default or name in self.dynamic_broker

    def for_listener(self, listener: str, name: str) -> Any:
        """The value of one setting for one listener (see `listener_settings` for several)."""
        return ListenerSettings(self, listener)[name]

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def is_sole_voter(self) -> bool:
        """Whether the static configuration names this node as the only voter."""
        return [voter.id for voter in self.voters] == [self.node_id]

    @property
    def metadata_log_dir(self) -> str:
        """The dir of the metadata log, without a trailing slash, so that it can be compared with
        `log.dirs`."""
        path: str = self.values["metadata.log.dir"] or self.log_dirs[0]
        return path.rstrip("/") or "/"

    @property
    def rack(self) -> str | None:
        rack: str | None = self.values["broker.rack"]
        return rack

    def _parse(self) -> dict[str, Any]:
        values: dict[str, Any] = dict(broker_defaults())
        for name, text in self.static.items():
            self._set(values, name, text)
        for layer in (self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                row = BROKER_ROWS.get(listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name)
                if row is not None and row[5] != READ_ONLY:
                    for coarser in BROKER_SYNONYMS.get(name, ()):
                        values[coarser] = broker_defaults()[
                            coarser
                        ]  # a setting in a finer unit overrides it, as in Kafka
                    self._set(values, name, text)
        for name, row in BROKER_ROWS.items():
            if row[2] is ... and name not in self.static:
                raise SettingsError(
                    f'Missing required configuration "{name}" which has no default value.', name=name
                )
        return values

    def _set(self, values: dict[str, Any], name: str, text: str) -> None:
        base = listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name
        row = BROKER_ROWS.get(base)
        if row is None:
            warning = warning_for(name)
            if warning:
                self.warnings.append(warning)
            return
        setting = Setting._make(row)
        value = parse_value(name, setting.type, text)
        check_value(setting if base == name else setting._replace(name=name), value)
        if base in KNOWN or base in WITHOUT_EFFECT:
            warning = check_classes(base, class_names(value))
            if warning:
                self.warnings.append(warning)
        values[name] = value

    def _lay_out_listeners(self) -> None:
        names = tuple(name.upper() for name in self.values["controller.listener.names"])
        self.controller_listener_names: tuple[str, ...] = names
        self.security_protocols = protocols = self._protocol_map()
        self.listeners: tuple[EndPoint, ...] = parse_end_points(
            "listeners", self.values["listeners"], protocols, distinct_ports=True
        )
        advertised = self.listeners
        if self.values["advertised.listeners"] is not None:
            advertised = parse_end_points(
                "advertised.listeners", self.values["advertised.listeners"], protocols, distinct_ports=False
            )
        self.controller_listeners = tuple(found for found in self.listeners if found.name in names)
        self.broker_listeners = tuple(found for found in self.listeners if found.name not in names)
        self.advertised_listeners = tuple(found for found in advertised if found.name not in names)
        by_name = {found.name: found for found in (*self.controller_listeners, *advertised)}
        self.advertised_controller_listeners = tuple(by_name[name] for name in names if name in by_name)
        self.inter_broker_listener_name = self._inter_broker_listener_name()

    def _protocol_map(self) -> dict[str, str]:
        """Protocols by listener. Controller listeners are PLAINTEXT if no listener uses security."""
        setting = "listener.security.protocol.map"
        protocols = parse_protocol_map(setting, self.values[setting])
        if self.is_set(setting):
            return protocols
        names = self.controller_listener_names
        used = {entry.partition("://")[0].upper() for entry in self.values["listeners"]}.union(names)
        if used.isdisjoint(("SSL", "SASL_SSL", "SASL_PLAINTEXT")):
            protocols.update(dict.fromkeys(names, "PLAINTEXT"))
        return protocols

    def _inter_broker_listener_name(self) -> str:
        name: str | None = self.values["inter.broker.listener.name"]
        if name is None:
            protocol: str = self.values["security.inter.broker.protocol"]
            return protocol
        if self.is_set("security.inter.broker.protocol"):
            raise SettingsError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
                name="inter.broker.listener.name",
            )
        if name.upper() not in self.security_protocols:
            raise SettingsError(
                f"Listener with name {name.upper()} defined in inter.broker.listener.name not found in "
                "listener.security.protocol.map.",
                name="inter.broker.listener.name",
                allowed=", ".join(sorted(self.security_protocols)),
            )
        return name.upper()


def class_names(value: Value) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return (value,) if isinstance(value, str) and value else ()

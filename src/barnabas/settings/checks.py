"""Checks of relations between settings, which a Kafka node makes before it starts.

In: loaded broker settings. Raises SettingsError with Kafka's messages.
Does not know: files, sockets, the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.settings.errors import SettingsError

if TYPE_CHECKING:
    from barnabas.settings.broker import BrokerSettings

MEGABYTE = 1024 * 1024
COMPRESSION_CODECS = range(5)
# Settings of groups with a minimum and a maximum: the middle of the name, and whether both exist.
BOUNDED_BY_GROUP = {
    "group.consumer.": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    "group.share.": (
        "heartbeat.interval.ms",
        "session.timeout.ms",
        "assignment.interval.ms",
        "record.lock.duration.ms",
        "delivery.count.limit",
        "partition.max.record.locks",
    ),
    "group.streams.": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
}


def require(condition: bool, message: str, name: str = "") -> None:
    if not condition:
        raise SettingsError(message, name=name)


def check_together(settings: BrokerSettings) -> None:
    check_identity(settings)
    check_log(settings)
    check_replication(settings)
    check_quorum(settings)
    if settings.is_broker:
        check_broker_listeners(settings)
    check_connections(settings)
    check_groups(settings)


def check_identity(settings: BrokerSettings) -> None:
    require(
        settings["broker.id"] == settings.node_id,
        f"You must set `node.id` to the same value as `broker.id` (they are {settings.node_id} and "
        f"{settings['broker.id']}).",
        "broker.id",
    )


def check_log(settings: BrokerSettings) -> None:
    topic = settings.topic_defaults
    require(topic.segment_ms >= 1, "log.roll.ms must be greater than or equal to 1", "log.roll.ms")
    require(
        topic.segment_jitter_ms >= 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
        "log.roll.jitter.ms",
    )
    require(
        topic.retention_ms >= 1 or topic.retention_ms == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        "log.retention.ms",
    )
    threads = settings["log.cleaner.threads"]
    require(
        threads > 0 and settings["log.cleaner.dedupe.buffer.size"] // threads > MEGABYTE,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread, and there must be one "
        "(log.cleaner.threads).",
        "log.cleaner.dedupe.buffer.size",
    )
    cordoned = settings["cordoned.log.dirs"]
    missing = [folder for folder in cordoned if folder not in settings.log_dirs and cordoned != ("*",)]
    require(
        not missing,
        "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
        + ", ".join(missing),
        "cordoned.log.dirs",
    )
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        require(
            settings[name] in COMPRESSION_CODECS,
            f"Unknown compression type id: {settings[name]} for {name} (allowed: 0 none, 1 gzip, 2 snappy, "
            "3 lz4, 4 zstd)",
            name,
        )


def check_replication(settings: BrokerSettings) -> None:
    wait_ms = settings["replica.fetch.wait.max.ms"]
    require(
        wait_ms <= settings["replica.socket.timeout.ms"],
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
        "replica.socket.timeout.ms",
    )
    require(
        wait_ms <= settings["replica.lag.time.max.ms"],
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent "
        "frequent changes in ISR",
        "replica.fetch.wait.max.ms",
    )


def check_quorum(settings: BrokerSettings) -> None:
    voter_ids = [voter.id for voter in settings.voters]
    shown = f"controller.quorum.voters=Set({', '.join(map(str, voter_ids))})"
    require(
        bool(voter_ids or settings.bootstrap_servers),
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of "
        "bootstrap controllers or controller.quorum.voters must contain a parseable set of controllers.",
        "controller.quorum.voters",
    )
    if settings.is_controller:
        check_controller_listeners(settings)
        require(
            not voter_ids or settings.node_id in voter_ids,
            f"If process.roles contains the 'controller' role, the node id {settings.node_id} must be "
            f"included in the set of voters {shown}",
            "controller.quorum.voters",
        )
        return
    require(
        settings.node_id not in voter_ids,
        f"If process.roles contains just the 'broker' role, the node id {settings.node_id} must not be "
        f"included in the set of voters {shown}",
        "controller.quorum.voters",
    )
    require(
        not settings.controller_listeners,
        "controller.listener.names must not contain a value appearing in the 'listeners' configuration "
        "when running KRaft with just the broker role",
        "controller.listener.names",
    )
    for name in settings.controller_listener_names:
        require(
            name in settings.security_protocols,
            f"Controller listener with name {name} defined in controller.listener.names not found in "
            "listener.security.protocol.map (an explicit security mapping for each controller listener is "
            "required if listener.security.protocol.map is non-empty, or if there are security protocols "
            "other than PLAINTEXT in use)",
            "controller.listener.names",
        )
    require(
        not settings["controller.quorum.auto.join.enable"],
        "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' "
        "role.",
        "controller.quorum.auto.join.enable",
    )


def check_controller_listeners(settings: BrokerSettings) -> None:
    listening = {end_point.name for end_point in settings.listeners}
    name = "controller.listener.names"
    if not settings.is_broker:
        require(
            listening <= set(settings.controller_listener_names),
            "The listeners config must only contain KRaft controller listeners from "
            "controller.listener.names when process.roles=controller",
            "listeners",
        )
    require(
        bool(settings.controller_listeners),
        f"{name} must contain at least one value appearing in the 'listeners' configuration when running "
        "the KRaft controller role",
        name,
    )
    require(
        listening.issuperset(settings.controller_listener_names),
        f"{name} must only contain values appearing in the 'listeners' configuration when running the KRaft "
        "controller role",
        name,
    )


def check_broker_listeners(settings: BrokerSettings) -> None:
    advertised = [end_point.name for end_point in settings.advertised_listeners]
    listening = [end_point.name for end_point in settings.listeners]
    require(
        bool(advertised),
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
        "advertised.listeners",
    )
    require(
        settings.inter_broker_listener_name in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid "
        f"options based on currently configured listeners are {','.join(advertised)}",
        "inter.broker.listener.name",
    )
    require(
        set(advertised) <= set(listening),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in "
        f"listeners. Found {','.join(advertised)}. The valid options based on the current configuration "
        f"are {','.join(listening)}",
        "advertised.listeners",
    )
    for end_point in (*settings.advertised_listeners, *settings.advertised_controller_listeners):
        require(
            end_point.host != "0.0.0.0",
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP "
            "address.",
            "advertised.listeners",
        )
    protocol = settings.security_protocols[settings.inter_broker_listener_name]
    mechanisms = settings.for_listener(settings.inter_broker_listener_name, "sasl.enabled.mechanisms")
    require(
        not protocol.startswith("SASL") or settings["sasl.mechanism.inter.broker.protocol"] in mechanisms,
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is "
        "used for inter-broker communication",
        "sasl.mechanism.inter.broker.protocol",
    )


def check_connections(settings: BrokerSettings) -> None:
    queued_bytes = settings["queued.max.request.bytes"]
    require(
        queued_bytes <= 0 or queued_bytes >= settings["socket.request.max.bytes"],
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        "queued.max.request.bytes",
    )
    require(
        settings["max.connections.per.ip"] > 0 or bool(settings.max_connections_per_ip_overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
        "max.connections.per.ip",
    )
    delay_ms, idle_ms = (
        settings["connection.failed.authentication.delay.ms"],
        settings["connections.max.idle.ms"],
    )
    require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out",
        "connections.max.idle.ms",
    )
    for name in settings["early.start.listeners"] or ():
        require(
            name.upper() in {end_point.name for end_point in settings.listeners}
            or name.upper() in settings.controller_listener_names,
            f"early.start.listeners contains listener {name}, but this is not contained in listeners or "
            "controller.listener.names",
            "early.start.listeners",
        )


def check_groups(settings: BrokerSettings) -> None:
    require(
        "classic" in settings["group.coordinator.rebalance.protocols"],
        "Disabling the 'classic' protocol is not supported (group.coordinator.rebalance.protocols).",
        "group.coordinator.rebalance.protocols",
    )
    for prefix, names in BOUNDED_BY_GROUP.items():
        for name in names:
            check_bounds(settings, f"{prefix}min.{name}", prefix + name, f"{prefix}max.{name}")
        heartbeat, session = f"{prefix}heartbeat.interval.ms", f"{prefix}session.timeout.ms"
        require(
            settings[heartbeat] < settings[session], f"{heartbeat} must be less than {session}", heartbeat
        )
    standby, standby_max = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    require(
        settings[standby] <= settings[standby_max],
        f"{standby} must be less than or equal to {standby_max}",
        standby,
    )


def check_bounds(settings: BrokerSettings, low: str, name: str, high: str) -> None:
    require(settings[high] >= settings[low], f"{high} must be greater than or equal to {low}", high)
    require(settings[name] >= settings[low], f"{name} must be greater than or equal to {low}", name)
    require(settings[name] <= settings[high], f"{name} must be less than or equal to {high}", name)

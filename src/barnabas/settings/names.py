"""Unknown setting names: of a plug-in, of a listener, removed from Kafka, or misspelt.

In: a name that is not in the tables. Out: None if a plug-in or listener may use it, otherwise a warning.
Does not know: values.
"""

from __future__ import annotations

from barnabas.settings.definitions import BROKER_ROWS

LISTENER_PREFIX = "listener.name."
# Settings that plug-ins read for themselves.
PLUG_IN_PREFIXES = (
    "config.providers.",
    "rlmm.config.",
    "rsm.config.",
    "remote.log.metadata.",
    "metrics.context.",
)
PLUG_IN_NAMES = frozenset(
    {"super.users", "allow.everyone.if.no.acl.found", "metrics.jmx.include", "metrics.jmx.exclude"}
)
# A SASL mechanism may stand between listener and setting: listener.name.internal.plain.sasl.jaas.config.
MECHANISM_SETTINGS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
REMOVED_PREFIXES = {
    "zookeeper.": "there is no ZooKeeper since Kafka 4.0",
    "password.encoder.": "it belonged to ZooKeeper; barnabas.secret.key seals passwords here",
    "confluent.": "it belongs to Confluent Server",
}
REMOVED = {
    "auto.include.jmx.reporter": "list the reporters in metric.reporters",
    "broker.id.generation.enable": "set node.id",
    "control.plane.listener.name": "use controller.listener.names",
    "controlled.shutdown.max.retries": "controllers and brokers agree on it in KRaft",
    "controlled.shutdown.retry.backoff.ms": "controllers and brokers agree on it in KRaft",
    "group.coordinator.new.enable": "the new coordinator is the only one",
    "inter.broker.protocol.version": "feature levels took its place",
    "leader.imbalance.per.broker.percentage": "leaders are balanced whenever one is not preferred",
    "log.message.downconversion.enable": "old message formats are not served any more",
    "log.message.format.version": "record batches have one format",
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and .after.max.ms",
    "offsets.commit.required.acks": "commits always wait for all in-sync replicas",
    "reserved.broker.max.id": "set node.id",
}  # fmt: skip


def warning_for(name: str) -> str | None:
    """The warning for an unknown name; None if a plug-in or a listener may use it."""
    if name in PLUG_IN_NAMES or name.startswith(PLUG_IN_PREFIXES):
        return None
    if name.startswith(LISTENER_PREFIX):
        return None if listener_base_name(name) in BROKER_ROWS else unknown(name)
    if name in REMOVED:
        return f"{name} was removed from Kafka: {REMOVED[name]}."
    for prefix, reason in REMOVED_PREFIXES.items():
        if name.startswith(prefix):
            return f"{name} has no meaning here: {reason}."
    return unknown(name)


def unknown(name: str) -> str:
    from difflib import get_close_matches  # needed only here, and slow to import

    close = get_close_matches(name, BROKER_ROWS, n=1, cutoff=0.8)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"Unknown setting {name} is ignored{hint}"


def listener_base_name(name: str) -> str:
    """The setting that `listener.name.<listener>.[mechanism.]<setting>` overrides; "" when there is none."""
    _, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    for setting in MECHANISM_SETTINGS:
        if rest.endswith("." + setting):
            return setting
    return rest

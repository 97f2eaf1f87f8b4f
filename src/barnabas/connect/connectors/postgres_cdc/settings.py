"""Settings of the PostgreSQL connector, with Debezium's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config import ConfigDef, at_least, one_of_any_case
from barnabas.connect.connectors.debezium.common_settings import define_common
from barnabas.connect.connectors.debezium.masks import mask_errors
from barnabas.connect.connectors.debezium.signals import define_signals, signal_errors
from barnabas.connect.connectors.debezium.without_effect import COMMON

SNAPSHOT_MODES = ("always", "initial", "initial_only", "no_data", "never", "when_needed")
TEXTS: dict[str, tuple[str | None, str]] = {
    "database.sslmode": ("prefer", "disable, prefer, require, verify-ca or verify-full"),
    "database.sslcert": (None, "File with the certificate of the client"),
    "database.sslkey": (None, "File with the key of the client"),
    "database.sslrootcert": (None, "File with the certificates of authorities"),
    "slot.name": ("debezium", "The replication slot; it is created if it is missing"),
    "publication.name": (
        "dbz_publication",
        "The publication; publication.autocreate.mode says who creates it",
    ),
    "unavailable.value.placeholder": (
        "__debezium_unavailable_value",
        "Stands for TOASTed values that an update left",
    ),
    "topic.delimiter": (".", "Between the parts of topics"),
    "topic.heartbeat.prefix": (
        "__debezium-heartbeat",
        "Comes before topic.prefix in the topic of heartbeats",
    ),
    "topic.transaction": ("transaction", "Comes after topic.prefix in the topic of transactions"),
    "replica.identity.autoset.values": (None, "Replica identities to set: schema.table:FULL,…"),
    "heartbeat.action.query": (None, "A statement that is executed with each heartbeat"),
    "message.key.columns": (None, "Keys of tables: schema.table:column,column;…"),
}
LISTS = ("schema", "table", "column", "message.prefix")
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "plugin.name": ("pgoutput", ("pgoutput",)),
    "publication.autocreate.mode": ("all_tables", ("all_tables", "disabled", "filtered", "no_tables")),
    "snapshot.mode": ("initial", SNAPSHOT_MODES),
    "decimal.handling.mode": ("precise", ("precise", "double", "string")),
    "time.precision.mode": (
        "adaptive",
        ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    ),
    "binary.handling.mode": ("bytes", ("bytes", "base64", "base64-url-safe", "hex")),
    "hstore.handling.mode": ("json", ("json", "map")),
    "offset.mismatch.strategy": (
        "no_validation",
        ("no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"),
    ),
    "interval.handling.mode": ("numeric", ("numeric", "string")),
}
NUMBERS = {
    "database.port": (5432, "Port of the server"),
    "money.fraction.digits": (2, "Digits of money behind the point"),
    "snapshot.fetch.size": (10240, "Rows of one batch of a snapshot"),
    "max.batch.size": (2048, "Changes of one batch"),
    "heartbeat.interval.ms": (0, "Time between heartbeats; 0: none"),
    "status.update.interval.ms": (10000, "Time between reports to the server"),
    "snapshot.delay.ms": (0, "Pause before a snapshot"),
}
FLAGS = {
    "provide.transaction.metadata": (False, "Send the beginnings and ends of transactions"),
    "tombstones.on.delete": (True, "Send a tombstone after each delete"),
    "publish.via.partition.root": (False, "Publish changes of partitions as those of their table"),
    "include.unknown.datatypes": (False, "Send columns of unknown types as bytes; else they are left out"),
    "slot.drop.on.stop": (False, "Drop the slot when the task stops: changes after that are lost"),
}
WITHOUT_EFFECT = {
    **COMMON,
    "database.tcpKeepAlive": ("true", "connections are kept alive"),
    "slot.failover": ("false", "the slot is made without it"),
    "slot.max.retries": ("6", "a server that is away is asked again without end"),
    "slot.retry.delay.ms": ("10000", "pauses between attempts grow by themselves"),
    "slot.stream.params": (None, "pgoutput gets the publication only"),
    "incremental.snapshot.watermarking.strategy": ("INSERT_INSERT", "windows are two rows"),
    "flush.lsn.source": ("true", "the slot follows stored offsets"),
    "lsn.flush.mode": ("connector", "the slot follows stored offsets"),
    "schema.refresh.mode": ("columns_diff", "the catalogue is asked for each relation"),
    "snapshot.locking.mode": ("none", "a snapshot locks no tables"),
    "xmin.fetch.interval.ms": ("0", "xmin is not read"),
}


def definition() -> ConfigDef:
    found = (
        ConfigDef()
        .define(
            "topic.prefix", "STRING", importance="HIGH", doc="Comes before all topics; unique for a database."
        )
        .define("database.hostname", "STRING", importance="HIGH", doc="Host of the server.")
        .define("database.user", "STRING", importance="HIGH", doc="A user with REPLICATION and SELECT.")
        .define("database.password", "PASSWORD", None, "HIGH", "Password of the user.")
        .define("database.dbname", "STRING", importance="HIGH", doc="The database.")
        .define("snapshot.select.statement.overrides", "LIST", "", "LOW", "Tables with own statements.")
        .define("snapshot.include.collection.list", "LIST", "", "LOW", "Tables whose rows a snapshot has.")
        .define("skipped.operations", "LIST", "t", "LOW", "Operations that are not sent: c, u, d, t, none.")
    )
    for name, (default, doc) in TEXTS.items():
        found.define(name, "STRING", default, "MEDIUM", doc)
    for name in LISTS:
        for kind in ("include", "exclude"):
            found.define(f"{name}.{kind}.list", "LIST", "", "MEDIUM", f"Patterns of {name}s to {kind}.")
    for name, (choice, allowed) in CHOICES.items():
        found.define(name, "STRING", choice, "MEDIUM", f"One of {', '.join(allowed)}.",
                     validator=one_of_any_case(*allowed))  # fmt: skip
    for name, (number, doc) in NUMBERS.items():
        found.define(name, "INT", number, "MEDIUM", doc, validator=at_least(0))
    for name, (flag, doc) in FLAGS.items():
        found.define(name, "BOOLEAN", flag, "MEDIUM", doc)
    return define_common(define_signals(found)).without_effect(WITHOUT_EFFECT)


CONFIG = definition()


def setting_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Settings that do not fit together, or that are known but not built."""
    errors: dict[str, list[str]] = {**signal_errors(config), **mask_errors(config)}
    for name in LISTS:
        if config.get(f"{name}.include.list") and config.get(f"{name}.exclude.list"):
            text = f"{name}.include.list and {name}.exclude.list are exclusive: set one of them"
            errors[f"{name}.exclude.list"] = [text]
    if config.get("plugin.name", "pgoutput").lower() == "decoderbufs":
        errors["plugin.name"] = [
            "decoderbufs is not known here: set plugin.name=pgoutput, which every server has"
        ]
    slot = config.get("slot.name", "")
    if slot and not all(each.islower() or each.isdigit() or each == "_" for each in slot):
        errors["slot.name"] = ["slot names have lower-case letters, digits and underscores only"]
    return errors

"""Settings of the MySQL and MariaDB connectors, with Debezium's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config import ConfigDef, at_least, one_of_any_case
from barnabas.connect.connectors.debezium.common_settings import define_common
from barnabas.connect.connectors.debezium.masks import mask_errors
from barnabas.connect.connectors.debezium.signals import define_signals, signal_errors
from barnabas.connect.connectors.debezium.without_effect import COMMON

SNAPSHOT_MODES = (
    "always", "initial", "initial_only", "no_data", "schema_only", "never", "when_needed", "recovery",
    "schema_only_recovery",
)  # fmt: skip
WITHOUT_ROWS = ("no_data", "schema_only", "recovery", "schema_only_recovery")
RECOVERIES = ("recovery", "schema_only_recovery")
TEXTS: dict[str, tuple[str | None, str]] = {
    "database.ssl.mode": ("preferred", "disabled, preferred, required, verify_ca or verify_identity"),
    "database.ssl.ca": (None, "File with the certificates of authorities"),
    "topic.delimiter": (".", "Between the parts of topics"),
    "topic.transaction": ("transaction", "Comes after topic.prefix in the topic of transactions"),
    "topic.heartbeat.prefix": ("__debezium-heartbeat", "Before topic.prefix in the topic of heartbeats"),
    "heartbeat.action.query": (None, "A statement that is executed with each heartbeat"),
    "message.key.columns": (None, "Keys of tables: database.table:column,column;…"),
    "schema.history.internal": (
        "io.debezium.storage.kafka.history.KafkaSchemaHistory",
        "Where the schema history is: KafkaSchemaHistory, FileSchemaHistory or MemorySchemaHistory",
    ),
    "schema.history.internal.kafka.topic": (None, "The topic of the schema history"),
    "schema.history.internal.kafka.bootstrap.servers": (None, "Its brokers"),
}  # fmt: skip
LISTS = ("database", "table", "column")
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "snapshot.mode": ("initial", SNAPSHOT_MODES),
    "snapshot.locking.mode": ("minimal", ("minimal", "extended", "minimal_percona", "none")),
    "decimal.handling.mode": ("precise", ("precise", "double", "string")),
    "time.precision.mode": (
        "adaptive_time_microseconds",
        ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    ),
    "binary.handling.mode": ("bytes", ("bytes", "base64", "base64-url-safe", "hex")),
    "bigint.unsigned.handling.mode": ("long", ("long", "precise")),
}
NUMBERS = {
    "database.port": (3306, "Port of the server"),
    "snapshot.fetch.size": (10240, "Rows of one batch of a snapshot"),
    "max.batch.size": (2048, "Changes of one batch"),
    "heartbeat.interval.ms": (0, "Time between heartbeats; 0: none"),
    "snapshot.delay.ms": (0, "Pause before a snapshot"),
}
FLAGS = {
    "tombstones.on.delete": (True, "Send a tombstone after each delete"),
    "provide.transaction.metadata": (False, "Send the beginnings and ends of transactions"),
    "include.schema.changes": (True, "Send statements that change tables to the topic topic.prefix"),
}
WITHOUT_EFFECT = {
    **COMMON,
    "connect.timeout.ms": ("30000", "the driver's time to connect counts"),
    "connect.keep.alive": ("true", "a connection that breaks is opened again"),
    "connect.keep.alive.interval.ms": ("60000", "a connection that breaks is opened again"),
    "gtid.source.includes": (None, "all GTIDs of the server count"),
    "gtid.source.excludes": (None, "all GTIDs of the server count"),
    "gtid.source.filter.dml.events": ("true", "all GTIDs of the server count"),
    "incremental.snapshot.watermarking.strategy": ("INSERT_INSERT", "windows are two rows"),
    "include.query": ("false", "events do not have the statement"),
    "inconsistent.schema.handling.mode": ("fail", "tables whose columns are unknown fail the task"),
    "event.deserialization.failure.handling.mode": ("fail", "events that cannot be read fail the task"),
    "enable.time.adjuster": ("true", "years with two digits are read as the server does"),
    "min.row.count.to.stream.results": ("1000", "all tables are read as a stream"),
    "schema.history.internal.skip.unparseable.ddl": ("false", "statements that are not understood are told"),
    "schema.history.internal.store.only.captured.tables.ddl": ("false", "the connector decides"),
    "schema.history.internal.store.only.captured.databases.ddl": ("true", "the connector decides"),
    "use.nongraceful.disconnect": ("false", "connections are closed at once"),
}


def definition() -> ConfigDef:
    found = (
        ConfigDef()
        .define("topic.prefix", "STRING", importance="HIGH", doc="Before all topics; unique for a server.")
        .define("database.hostname", "STRING", importance="HIGH", doc="Host of the server.")
        .define(
            "database.user", "STRING", importance="HIGH",
            doc="A user with SELECT, RELOAD, REPLICATION SLAVE and REPLICATION CLIENT.",
        )
        .define("database.password", "PASSWORD", None, "HIGH", "Password of the user.")
        .define("database.server.id", "LONG", None, "HIGH", "Number of this reader as a replica.")
        .define("skipped.operations", "LIST", "t", "LOW", "Operations that are not sent: c, u, d, t, none.")
        .define("snapshot.select.statement.overrides", "LIST", "", "LOW", "Tables with own statements.")
        .define("snapshot.include.collection.list", "LIST", "", "LOW", "Tables whose rows a snapshot has.")
    )  # fmt: skip
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
    """Settings that do not fit together."""
    errors: dict[str, list[str]] = {**signal_errors(config), **mask_errors(config)}
    if config.get("signal.data.collection") and config["signal.data.collection"].count(".") != 1:
        errors["signal.data.collection"] = ["it must be database.table"]
    for name in LISTS:
        if config.get(f"{name}.include.list") and config.get(f"{name}.exclude.list"):
            text = f"{name}.include.list and {name}.exclude.list are exclusive: set one of them"
            errors[f"{name}.exclude.list"] = [text]
    kind = config.get("schema.history.internal", "KafkaSchemaHistory").rpartition(".")[2]
    needed = {
        "KafkaSchemaHistory": ("kafka.topic", "kafka.bootstrap.servers"),
        "FileSchemaHistory": ("file.filename",),
        "MemorySchemaHistory": (),
    }
    if kind not in needed:
        errors["schema.history.internal"] = [f"{kind} is not known: take one of {', '.join(needed)}"]
    for each in needed.get(kind, ()):
        name = f"schema.history.internal.{each}"
        if not config.get(name):
            errors.setdefault(name if each != "file.filename" else "schema.history.internal", []).append(
                f"{name} must be set: the schema history is kept there"
            )
    return errors

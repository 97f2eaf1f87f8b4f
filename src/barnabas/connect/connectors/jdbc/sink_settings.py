"""Settings of the JDBC sink, and what must fit together."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config import ConfigDef, at_least, one_of_any_case
from barnabas.connect.connectors.jdbc.common_settings import connection_errors, define_connection

WRITES, DATA, DDL, RETRIES = "Writes", "Data Mapping", "DDL Support", "Retries"
KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")

CONFIG = (
    define_connection(ConfigDef())
    .define(
        "insert.mode",
        "STRING",
        "insert",
        "HIGH",
        "insert, upsert or update.",
        WRITES,
        "MEDIUM",
        "Insert Mode",
        one_of_any_case("insert", "upsert", "update"),
    )
    .define(
        "batch.size", "INT", 3000, "MEDIUM", "Rows of one batch.", WRITES, "SHORT", "Batch Size", at_least(0)
    )
    .define(
        "delete.enabled",
        "BOOLEAN",
        False,
        "MEDIUM",
        "A null value deletes the row of its key; needs pk.mode=record_key.",
        WRITES,
        "SHORT",
        "Enable deletes",
    )
    .define(
        "table.name.format",
        "STRING",
        "${topic}",
        "MEDIUM",
        "The table of a topic; dots divide schema and table.",
        DATA,
        "LONG",
        "Table Name Format",
    )
    .define(
        "pk.mode",
        "STRING",
        "none",
        "HIGH",
        "Where the primary key comes from.",
        DATA,
        "MEDIUM",
        "Primary Key Mode",
        one_of_any_case("none", "kafka", "record_key", "record_value"),
    )
    .define(
        "pk.fields",
        "LIST",
        "",
        "MEDIUM",
        "Names of the primary key's fields.",
        DATA,
        "LONG",
        "Primary Key Fields",
    )
    .define(
        "fields.whitelist",
        "LIST",
        "",
        "MEDIUM",
        "Fields that are written; empty: all.",
        DATA,
        "LONG",
        "Fields Whitelist",
    )
    .define(
        "replace.null.with.default",
        "BOOLEAN",
        True,
        "LOW",
        "Write a field's default in place of null.",
        DATA,
        "SHORT",
        "Replace Null With Default",
    )
    .define(
        "auto.create",
        "BOOLEAN",
        False,
        "MEDIUM",
        "Create tables that are missing.",
        DDL,
        "SHORT",
        "Auto-Create",
    )
    .define(
        "auto.evolve",
        "BOOLEAN",
        False,
        "MEDIUM",
        "Add columns for new optional fields.",
        DDL,
        "SHORT",
        "Auto-Evolve",
    )
    .define(
        "max.retries",
        "INT",
        10,
        "MEDIUM",
        "Retries before the task fails.",
        RETRIES,
        "SHORT",
        "Maximum Retries",
        at_least(0),
    )
    .define(
        "retry.backoff.ms",
        "INT",
        3000,
        "MEDIUM",
        "Pause before a retry.",
        RETRIES,
        "SHORT",
        "Retry Backoff (millis)",
        at_least(0),
    )
    .define(
        "barnabas.offsets.table",
        "STRING",
        "",
        "LOW",
        "A table that keeps the offsets of the topics, written in"
        " the transaction of the rows: exactly once, also without keys. Empty: the group's offsets count.",
        WRITES,
        "MEDIUM",
        "Offsets Table",
    )
    .without_effect(
        {
            "table.types": ("TABLE", "the name of a table decides"),
            "connection.attempts": ("3", "max.retries counts"),
            "connection.backoff.ms": ("10000", "retry.backoff.ms counts"),
            "timestamp.precision.mode": ("microseconds", "times have the digits of their schema"),
            "timestamp.fields.list": (None, "columns have the types of the fields"),
            "date.timezone": ("DB_TIMEZONE", "dates have no zone"),
            "mssql.use.merge.holdlock": ("true", "there is no SQL Server"),
            "trim.sensitive.log": ("false", "messages of the database are shown as they are"),
        }
    )
)


def sink_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Settings that do not fit together."""
    errors = connection_errors(config)
    pk = config.get("pk.mode", "none").lower()
    if config.get("delete.enabled", "").lower() == "true" and pk != "record_key":
        text = "Deletes are only supported for pk.mode record_key"
        errors.setdefault("delete.enabled", []).append(text)
        errors.setdefault("pk.mode", []).append(text)
    if config.get("insert.mode", "insert").lower() in ("upsert", "update") and pk == "none":
        errors.setdefault("pk.mode", []).append(
            f"insert.mode={config['insert.mode']} needs a primary key: set pk.mode to record_key,"
            " record_value or kafka"
        )
    fields = [each for each in config.get("pk.fields", "").split(",") if each.strip()]
    if pk == "kafka" and fields and len(fields) != 3:
        errors.setdefault("pk.fields", []).append(
            "pk.mode=kafka takes three names, for topic, partition and offset, or none;"
            f" {len(fields)} are given"
        )
    return errors

"""Settings of the lake sink, and what must fit together. Many have the names of the JDBC sink."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config import ConfigDef, non_empty, one_of

TABLE, ROWS = "Tables", "Rows"
ICEBERG = "Iceberg tables have a connector of their own: org.apache.iceberg.connect.IcebergSinkConnector"


def definitions() -> ConfigDef:
    return (
        ConfigDef()
        .define(
            "lake.path", "STRING", importance="HIGH", doc="The folder or URL of the lake.", group=TABLE,
            validator=non_empty(),
        )
        .define(
            "lake.format", "STRING", "delta", "HIGH", "The format of tables: delta.", TABLE,
            validator=one_of("delta", "iceberg"),
        )
        .define(
            "table.name.format", "STRING", "${topic}", "MEDIUM",
            "The folder of a topic's table in the lake, with ${topic}.", TABLE, validator=non_empty(),
        )
        .define("auto.create", "BOOLEAN", True, "MEDIUM", "Create tables that are missing.", TABLE)
        .define("auto.evolve", "BOOLEAN", True, "MEDIUM", "Add columns that tables lack.", TABLE)
        .define("lake.partition.by", "LIST", "", "LOW", "Columns that divide new tables into folders.", TABLE)
        .define(
            "insert.mode", "STRING", "insert", "HIGH", "Append rows, or upsert them by key.", ROWS,
            validator=one_of("insert", "upsert"),
        )
        .define(
            "pk.mode", "STRING", "none", "HIGH",
            "Where the key of a row comes from: the record's key, or fields of its value.", ROWS,
            validator=one_of("none", "record_key", "record_value"),
        )
        .define(
            "pk.fields", "LIST", "", "MEDIUM",
            "Names of key columns: fields of a struct, or one name for a key that is a single value.", ROWS,
        )
        .define(
            "delete.enabled", "BOOLEAN", False, "MEDIUM",
            "A record without a value deletes the row of its key; needs upsert and pk.mode=record_key.", ROWS,
        )
        .define(
            "lake.coordinates", "BOOLEAN", False, "LOW",
            "Add columns kafka_topic, kafka_partition, kafka_offset and kafka_timestamp.", ROWS,
        )
    )  # fmt: skip


def lake_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Settings that do not fit together."""
    errors: dict[str, list[str]] = {}
    if config.get("lake.format") == "iceberg":
        errors["lake.format"] = [ICEBERG]
    keys = [each for each in config.get("pk.fields", "").split(",") if each.strip()]
    mode, source = config.get("insert.mode", "insert"), config.get("pk.mode", "none")
    if mode == "upsert" and source == "none":
        errors["pk.mode"] = ["insert.mode=upsert needs a key: set pk.mode to record_key or record_value"]
    if source == "record_value" and not keys:
        errors["pk.fields"] = ["pk.mode=record_value needs pk.fields, the fields that are the key"]
    if config.get("delete.enabled", "false").strip().lower() == "true" and (
        mode != "upsert" or source != "record_key"
    ):
        errors["delete.enabled"] = ["delete.enabled needs insert.mode=upsert and pk.mode=record_key"]
    return errors

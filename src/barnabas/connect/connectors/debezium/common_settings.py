"""Settings that all of Debezium's connectors have."""

from __future__ import annotations

from barnabas.connect.config import ConfigDef, at_least, one_of_any_case
from barnabas.connect.connectors.debezium.runs import BYTES

NAME_MODES = ("none", "avro", "avro_unicode")


def define_common(settings: ConfigDef) -> ConfigDef:
    for name, of in (("column", "columns"), ("datatype", "types of columns")):
        doc = f"Patterns of {of} whose fields have the type of the database as parameters."
        settings.define(f"{name}.propagate.source.type", "LIST", "", "LOW", doc)
    for name in ("schema", "field"):
        settings.define(f"{name}.name.adjustment.mode", "STRING", "none", "LOW",
                        f"How names of {name}s are made fit for Avro: {', '.join(NAME_MODES)}.",
                        validator=one_of_any_case(*NAME_MODES))  # fmt: skip
    settings.define(BYTES, "LONG", 0, "LOW", "Bytes of changes that wait; 0: 16 MiB.", validator=at_least(0))
    doc = "Leave out updates that change none of the captured columns."
    settings.define("skip.messages.without.change", "BOOLEAN", False, "LOW", doc)
    doc = "Send headers that name the connector."
    return settings.define("extended.headers.enabled", "BOOLEAN", True, "LOW", doc)

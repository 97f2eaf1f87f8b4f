"""Rules that turn records into rows: one `TableRule` for each table of a topic.

DataStax' rules come from settings, Confluent's from the schemas of records. Does not know: the driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.connectors.cassandra.cql_types import MICROSECONDS, Codec, cql_type
from barnabas.connect.connectors.cassandra.mapping import Mapping, Source, parse_mapping, quoted, unquoted
from barnabas.connect.data import DataError, Schema, Type
from barnabas.connect.data.date_formats import DateFormat
from barnabas.connect.plugins import ConnectError

CONSISTENCIES = (
    "ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE",
)  # fmt: skip
OF_TABLE = re.compile(
    r'topic\.(?P<topic>[a-zA-Z0-9._-]+)\.(?P<keyspace>[A-Za-z0-9_]+|"[^"]+")\.(?P<table>[A-Za-z0-9_]+|"[^"]+")'
    r"\.(?P<name>mapping|query|consistencyLevel|ttl|ttlTimeUnit|timestampTimeUnit|nullToUnset|deletesEnabled)"
)
OF_CODEC = re.compile(r"topic\.(?P<topic>[a-zA-Z0-9._-]+)\.codec\.(?P<name>[A-Za-z]+)")
LOCALE = "en_US"
ISO = re.compile(r"CQL_TIMESTAMP|ISO_[A-Z_]+")
# Letters that mean the same to Java's DateTimeFormatter as to our formats, with the widths that do.
PATTERN = re.compile(r"(?:yyyy|M{1,4}|dd?|HH?|hh?|mm?|ss?|SSS|E{1,4}|a|Z|X{1,3}|'(?:[^']|'')*'|[^A-Za-z'])+")


@dataclass(frozen=True, slots=True)
class TableRule:
    """How records of a topic become rows of a table."""

    keyspace: str
    table: str
    mapping: Mapping
    query: str = ""
    consistency: str = "LOCAL_ONE"
    ttl_s: int = -1
    ttl_unit: str = "SECONDS"
    timestamp_unit: str = "MICROSECONDS"
    null_to_unset: bool = True
    deletes: bool = True
    codec: Codec = field(default_factory=Codec)

    @property
    def name(self) -> str:
        return f"{quoted(self.keyspace)}.{quoted(self.table)}"


def rules_of(config: Map[str, str | None]) -> dict[str, list[TableRule]]:
    """DataStax' rules by topic. ConnectError names the setting that is wrong."""
    given: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {}
    codecs: dict[str, dict[str, tuple[str, str]]] = {}
    for setting, value in config.items():
        if not setting.startswith("topic."):
            continue
        text = value or ""
        if found := OF_CODEC.fullmatch(setting):
            codecs.setdefault(found["topic"], {})[found["name"]] = (setting, text)
        elif found := OF_TABLE.fullmatch(setting):
            place = (found["topic"], unquoted(found["keyspace"]), unquoted(found["table"]))
            given.setdefault(place, {})[found["name"]] = (setting, text)
        else:
            raise ConnectError(
                f"{setting}: no such setting; write topic.<topic>.<keyspace>.<table>.mapping"
                " (or query, consistencyLevel, ttl, ttlTimeUnit, timestampTimeUnit, nullToUnset,"
                " deletesEnabled)"
                " or topic.<topic>.codec.<name>"
            )
    rules: dict[str, list[TableRule]] = {}
    for (topic, keyspace, table), parts in given.items():
        codec = codec_of(codecs.get(topic, {}))
        rules.setdefault(topic, []).append(rule_of(topic, keyspace, table, parts, codec))
    return rules


def rule_of(
    topic: str, keyspace: str, table: str, parts: Map[str, tuple[str, str]], codec: Codec
) -> TableRule:
    if "mapping" not in parts:
        raise ConnectError(
            f"topic.{topic}.{keyspace}.{table}.mapping is missing: such as id=key, name=value.name"
        )
    setting, text = parts["mapping"]
    query = parts.get("query", ("", ""))[1].strip()
    deletes = flag(parts.get("deletesEnabled"), default=not query)
    if query and deletes:
        raise ConnectError(f"{parts['query'][0]}: set deletesEnabled=false with a query")
    ttl_unit = one_of(parts.get("ttlTimeUnit"), "SECONDS", tuple(MICROSECONDS))
    ttl = number(parts.get("ttl"), -1)
    return TableRule(
        keyspace,
        table,
        parse_mapping(text, setting),
        query,
        one_of(parts.get("consistencyLevel"), "LOCAL_ONE", CONSISTENCIES),
        int(ttl * MICROSECONDS[ttl_unit] // 1_000_000) if ttl > 0 else -1,
        ttl_unit,
        one_of(parts.get("timestampTimeUnit"), "MICROSECONDS", tuple(MICROSECONDS)),
        flag(parts.get("nullToUnset"), default=True),
        deletes,
        codec,
    )


def codec_of(parts: Map[str, tuple[str, str]]) -> Codec:
    zone, unit = ZoneInfo("UTC"), "MILLISECONDS"
    formats: dict[str, DateFormat | None] = {}
    for name, (setting, text) in parts.items():
        if name == "timeZone":
            try:
                zone = ZoneInfo(text)
            except (ZoneInfoNotFoundError, ValueError) as error:
                raise ConnectError(f"{setting}: {text!r} is no time zone, such as Europe/Berlin") from error
        elif name == "unit":
            unit = one_of((setting, text), "MILLISECONDS", tuple(MICROSECONDS))
        elif name in ("timestamp", "date", "time"):
            formats[name] = format_of(setting, text)
        elif name != "locale":
            raise ConnectError(f"{setting}: codecs have locale, timeZone, timestamp, date, time and unit")
        elif text != LOCALE:
            raise ConnectError(f"{setting}: names of months and days are known in {LOCALE} only")
    return Codec(zone, unit, **formats)


def format_of(setting: str, text: str) -> DateFormat | None:
    """The format of a pattern; None for ISO 8601."""
    if ISO.fullmatch(text):
        return None
    pattern = text.replace("uuuu", "yyyy")
    if PATTERN.fullmatch(pattern) is None:
        raise ConnectError(
            f"{setting}: {text!r} has letters that are not known; yyyy M d H h m s SSS E a Z X are, and ISO_…"
        )
    return DateFormat(pattern)


def flag(given: tuple[str, str] | None, *, default: bool) -> bool:
    if given is None:
        return default
    if given[1].strip().lower() not in ("true", "false"):
        raise ConnectError(f"{given[0]}: {given[1]!r} must be true or false")
    return given[1].strip().lower() == "true"


def number(given: tuple[str, str] | None, default: int) -> int:
    try:
        return default if given is None else int(given[1])
    except ValueError:
        assert given is not None
        raise ConnectError(f"{given[0]}: {given[1]!r} must be a whole number") from None


def one_of(given: tuple[str, str] | None, default: str, choices: tuple[str, ...]) -> str:
    if given is None:
        return default
    found = given[1].strip().upper()
    if found not in choices:
        raise ConnectError(f"{given[0]}: {given[1]!r} must be one of {', '.join(choices)}")
    return found


# -- Confluent's: a table for each topic, by schema ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableShape:
    """The table of a topic as its schemas ask for it: columns with their types, the key first."""

    keys: Map[str, str]
    others: Map[str, str]

    def create(self, name: str, options: str) -> str:
        columns = ", ".join(f"{quoted(each)} {kind}" for each, kind in {**self.keys, **self.others}.items())
        key = ", ".join(quoted(each) for each in self.keys)
        return f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({key})){options}"


def table_of(topic: str) -> str:
    """The table of a topic: names of tables have letters, digits and underscores only."""
    return re.sub(r"[^A-Za-z0-9_]", "_", topic)


def shape_of(topic: str, key: Schema | None, value: Schema | None) -> TableShape:
    if key is None or key.type is not Type.STRUCT or not key.fields:
        raise DataError(
            f"{topic}: the fields of the key are the primary key of the table, and the key is no struct with"
            " a schema: look at key.converter, or make one with the transform ValueToKey"
        )
    if value is not None and value.type is not Type.STRUCT:
        raise DataError(f"{topic}: the value must be a struct with a schema, and is {value.type}")
    try:
        keys = {one.name: cql_type(one.schema) for one in key.fields}
        fields = () if value is None else value.fields
        others = {one.name: cql_type(one.schema) for one in fields if one.name not in keys}
    except DataError as error:
        raise DataError(f"{topic}: {error}") from error
    return TableShape(keys, others)


def mapping_of(shape: TableShape) -> Mapping:
    return Mapping(
        {name: Source("key", (name,)) for name in shape.keys}
        | {name: Source("value", (name,)) for name in shape.others}
    )

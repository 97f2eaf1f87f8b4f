"""The WITH clause: properties of sources and sinks, checked, and the formats that they name.

Does not know: topics, columns of registries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.sql.analysis.facts import DEFAULT_KEY_FORMAT, DEFAULT_VALUE_FORMAT, WRAP_SINGLE_VALUES, Facts
from barnabas.sql.errors import Position, SqlError, did_you_mean
from barnabas.sql.metastore.schemas import Column, Format, TimestampColumn, WindowedKeys
from barnabas.sql.syntax.statements import UNITS_MS, Properties
from barnabas.sql.types.sql_types import Array, Decimal, Map, Struct

COMMON = {
    "KAFKA_TOPIC",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "PARTITIONS",
    "REPLICAS",
    "RETENTION_MS",
    "CLEANUP_POLICY",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WRAP_SINGLE_VALUE",
    "KEY_DELIMITER",
    "VALUE_DELIMITER",
    "KEY_SCHEMA_FULL_NAME",
    "VALUE_SCHEMA_FULL_NAME",
    "VALUE_AVRO_SCHEMA_FULL_NAME",
    "KEY_SCHEMA_ID",
    "VALUE_SCHEMA_ID",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
}
OF_CREATE = COMMON | {"WINDOW_TYPE", "WINDOW_SIZE", "SOURCED_BY_CONNECTOR"}
OF_CREATE_AS = COMMON | {"QUERY_ID"}


@dataclass(frozen=True, slots=True)
class FormatTraits:
    """Abilities of a format. `unwraps`: always, optional or never."""

    keys: bool = True
    values: bool = True
    several: bool = True
    nested: bool = True
    registry: bool = False
    unwraps: str = "optional"


FORMATS: Mapping[str, FormatTraits] = {
    "KAFKA": FormatTraits(several=False, nested=False, unwraps="always"),
    "JSON": FormatTraits(),
    "JSON_SR": FormatTraits(registry=True),
    "AVRO": FormatTraits(registry=True),
    "PROTOBUF": FormatTraits(registry=True, unwraps="never"),
    "PROTOBUF_NOSR": FormatTraits(unwraps="never"),
    "DELIMITED": FormatTraits(nested=False, unwraps="always"),
    "NONE": FormatTraits(values=False, several=False, nested=False, unwraps="never"),
}


@dataclass(frozen=True)
class Options:
    """Properties by name. Reading one checks its type."""

    values: Mapping[str, Any] = field(default_factory=dict)
    at: Position | None = None

    def text(self, name: str) -> str | None:
        found = self.values.get(name)
        if found is not None and not isinstance(found, str):
            raise SqlError(f"Invalid config variable(s) in the WITH clause: {name} is a text, not {found!r}")
        return found

    def number(self, name: str) -> int | None:
        found = self.values.get(name)
        if isinstance(found, str) and re.fullmatch(r"\d+", found):
            found = int(found)
        if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise SqlError(
                f"Invalid config variable(s) in the WITH clause: {name} is a number, not {found!r}"
            )
        return found

    def flag(self, name: str) -> bool | None:
        found = self.values.get(name)
        if isinstance(found, str) and found.lower() in ("true", "false"):
            found = found.lower() == "true"
        if found is not None and not isinstance(found, bool):
            raise SqlError(f"Invalid config variable(s) in the WITH clause: {name} is true or false")
        return found

    @property
    def window(self) -> WindowedKeys | None:
        kind, size = self.text("WINDOW_TYPE"), self.text("WINDOW_SIZE")
        if kind is None:
            if size is not None:
                raise SqlError("'WINDOW_SIZE' should not be set without 'WINDOW_TYPE'", self.at)
            return None
        if kind.upper() not in ("SESSION", "TUMBLING", "HOPPING"):
            raise SqlError(f"WINDOW_TYPE is SESSION, TUMBLING or HOPPING, not {kind!r}", self.at)
        if kind.upper() == "SESSION":
            if size is not None:
                raise SqlError("'WINDOW_SIZE' should not be set for SESSION windows.", self.at)
            return WindowedKeys("SESSION")
        if size is None:
            raise SqlError(f"{kind} windows require 'WINDOW_SIZE' in the WITH clause: '20 SECONDS'", self.at)
        return WindowedKeys(kind.upper(), duration_ms(size, self.at))

    @property
    def timestamp(self) -> TimestampColumn | None:
        name, pattern = self.text("TIMESTAMP"), self.text("TIMESTAMP_FORMAT")
        if name is None:
            if pattern is not None:
                raise SqlError("'TIMESTAMP_FORMAT' needs 'TIMESTAMP', the name of a column", self.at)
            return None
        quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
        return TimestampColumn(name[1:-1] if quoted else name.upper(), pattern)


def duration_ms(text: str, at: Position | None) -> int:
    found = re.fullmatch(r"\s*(\d+)\s+([A-Za-z]+)\s*", text)
    unit = found[2].upper().removesuffix("S") + "S" if found else ""
    if found is None or unit not in UNITS_MS:
        raise SqlError(f"{text!r} is no duration: '20 SECONDS' is expected", at)
    return int(found[1]) * UNITS_MS[unit]


def options_of(properties: Properties, known: set[str], at: Position | None) -> Options:
    values: dict[str, Any] = {}
    for name, value in properties:
        upper = name.upper()
        if upper not in known:
            hint = did_you_mean(upper, known)
            raise SqlError(f"Invalid config variable(s) in the WITH clause: {upper}.{hint}", at)
        values[upper] = value
    if "FORMAT" in values:
        for name in ("KEY_FORMAT", "VALUE_FORMAT"):
            if name in values:
                raise SqlError(f"Cannot supply both '{name}' and 'FORMAT' properties, as one is enough.", at)
    return Options(values, at)


def format_named(name: str, at: Position | None) -> str:
    upper = name.upper()
    if upper not in FORMATS:
        raise SqlError(f"Unknown format: {name}.{did_you_mean(upper, FORMATS)}", at)
    return upper


def key_format(options: Options, facts: Facts, inherited: Format | None = None) -> Format:
    """The format of keys: by name, else inherited, else the server's default."""
    given = options.text("KEY_FORMAT") or options.text("FORMAT")
    if given is None and inherited is not None and not _own(options, "KEY"):
        return inherited
    name = given or (inherited.name if inherited else facts.setting(DEFAULT_KEY_FORMAT)) or "KAFKA"
    name = format_named(name, options.at)
    return Format(name, _settings(options, "KEY", name), is_wrapped=FORMATS[name].unwraps == "never")


def value_format(options: Options, facts: Facts, columns: int, inherited: Format | None = None) -> Format:
    given = options.text("VALUE_FORMAT") or options.text("FORMAT")
    name = given or (inherited.name if inherited else facts.setting(DEFAULT_VALUE_FORMAT))
    if not name:
        raise SqlError(
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either provide one or "
            f"set a default via the '{DEFAULT_VALUE_FORMAT}' config.",
            options.at,
        )
    name = format_named(name, options.at)
    if not FORMATS[name].values:
        raise SqlError(f"The format {name} is for keys only", options.at)
    settings = dict(_settings(options, "VALUE", name))
    if given is None and inherited is not None and not settings:
        settings = {
            k: v for k, v in inherited.properties.items() if k not in ("schema_id", "full_schema_name")
        }
    wraps = _wraps(options, facts, name, columns, inherited if given is None else None)
    return Format(name, settings, is_wrapped=wraps)


def _wraps(options: Options, facts: Facts, name: str, columns: int, inherited: Format | None) -> bool:
    wanted, can = options.flag("WRAP_SINGLE_VALUE"), FORMATS[name].unwraps
    if wanted is not None:
        if columns > 1:
            raise SqlError("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas", options.at)
        if (wanted and can == "always") or (not wanted and can == "never"):
            verb = "wrapping" if wanted else "unwrapping"
            raise SqlError(f"Format '{name}' does not support '{verb}' of single values", options.at)
        return wanted
    if can != "optional":
        return can == "never"
    if inherited is not None and FORMATS[inherited.name].unwraps == "optional" and columns == 1:
        return inherited.is_wrapped
    return columns != 1 or (facts.setting(WRAP_SINGLE_VALUES) or "").lower() != "false"


def _own(options: Options, side: str) -> bool:
    return any(name.startswith(f"{side}_") and name != f"{side}_FORMAT" for name in options.values)


def _settings(options: Options, side: str, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    delimiter = options.text(f"{side}_DELIMITER")
    if delimiter is not None:
        if name != "DELIMITED":
            raise SqlError(f"{side}_DELIMITER is for the format DELIMITED, not for {name}", options.at)
        named = {"SPACE": " ", "TAB": "\t"}.get(delimiter.upper(), delimiter)
        if len(named) != 1:
            raise SqlError(
                f"Invalid delimiter value: '{delimiter}'. Delimiter must be a single character or TAB,SPACE",
                options.at,
            )
        found["delimiter"] = named
    full_name = options.text(f"{side}_SCHEMA_FULL_NAME")
    if side == "VALUE" and full_name is None:
        full_name = options.text("VALUE_AVRO_SCHEMA_FULL_NAME")
    if full_name is not None:
        found["full_schema_name"] = full_name
    schema_id = options.number(f"{side}_SCHEMA_ID")
    if schema_id is not None:
        if not FORMATS[name].registry:
            raise SqlError(f"{side}_SCHEMA_ID is provided but format {name} doesn't use schemas", options.at)
        found["schema_id"] = str(schema_id)
    nullable = options.text(f"{side}_PROTOBUF_NULLABLE_REPRESENTATION")
    if nullable is not None:
        found["nullable_representation"] = nullable.upper()
    return found


def check_columns(form: Format, columns: tuple[Column, ...], is_key: bool, at: Position | None) -> None:
    """SqlError where a format cannot hold these columns."""
    traits = FORMATS[form.name]
    side = "key" if is_key else "value"
    if is_key and form.name == "NONE" and columns:
        raise SqlError("Key format specified as NONE but key columns were given", at)
    if len(columns) > 1 and not traits.several:
        raise SqlError(
            f"The '{form.name}' format only supports a single field. Got: "
            f"{', '.join(map(str, columns))}" + (f" as the {side}" if is_key else ""),
            at,
        )
    for column in columns:
        kind = column.kind
        if not traits.nested and isinstance(kind, Array | Map | Struct):
            raise SqlError(
                f"The '{form.name}' format does not support type '{kind.base}', column: {column}", at
            )
        if form.name == "KAFKA" and (isinstance(kind, Decimal) or kind.base not in KAFKA_TYPES):
            raise SqlError(f"The 'KAFKA' format does not support type '{kind.base}', column: {column}", at)


KAFKA_TYPES = {"INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES"}

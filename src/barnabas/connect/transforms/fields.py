"""Transforms of structs and maps: fields extracted, wrapped, inserted, replaced and flattened; new keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from barnabas.connect.config import (
    REQUIRED,
    ConfigDef,
    ConfigType,
    Importance,
    Validator,
    entries,
    invalid,
    one_of_any_case,
)
from barnabas.connect.data import INT32, INT64, STRING, TIMESTAMP, Column, Records, Schema, Type, struct
from barnabas.connect.transforms.contract import FieldTransform, SchemaError, Transform, both
from barnabas.connect.transforms.parts_of_columns import (
    REPLACE_NULL,
    put_together,
    require_map,
    taken_apart,
    with_null_setting,
)

MEDIUM, HIGH = Importance.MEDIUM, Importance.HIGH


def check_pairs(name: str, value: Any) -> None:
    for one in value or ():
        if not re.fullmatch(r"[^:]+:[^:]+", one):
            raise invalid(name, value, f"Invalid rename mapping: {one}")


PAIRS = Validator("list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>", check_pairs)


@both
class ExtractField(FieldTransform):
    """The whole becomes one of its fields."""

    CONFIG = with_null_setting(
        ConfigDef().define("field", ConfigType.STRING, REQUIRED, MEDIUM, "The field to extract.")
    ).define(
        "field.syntax.version",
        ConfigType.STRING,
        "V1",
        HIGH,
        "V2: dots lead into nested fields, backticks quote names with dots.",
        validator=one_of_any_case("V1", "V2"),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        name = self.settings.text("field")
        self.path = path_of(name) if self.settings.text("field.syntax.version").upper() == "V2" else [name]

    def column(self, column: Column, records: Records) -> Column:
        for name in self.path:
            parts = taken_apart(column, "field extraction", defaults=self.settings.flag(REPLACE_NULL))
            assert column.schema is not None
            if name not in parts:
                known = ", ".join(column.schema.field_names)
                raise SchemaError(f"Unknown field: {'.'.join(self.path)}; the struct has {known}")
            column = Column(column.schema.field(name), parts[name])
        return column

    def plain(self, value: Any, row: int, records: Records) -> Any:
        for name in self.path:
            if value is None:
                return None
            value = require_map(value, "field extraction").get(name)
        return value


def path_of(text: str) -> list[str]:
    """The steps of a path: `a.b`, `` `a.b`.c ``."""
    found: list[str] = []
    rest = text
    while rest:
        if rest.startswith("`"):
            quoted = re.match(r"`((?:[^`\\]|\\.|`(?!\.|$))*)`(?:\.|$)", rest)
            if quoted is None:
                raise invalid("field", text, "a backtick is not closed")
            found.append(quoted[1].replace("\\`", "`"))
            rest = rest[quoted.end() :]
        else:
            name, _, rest = rest.partition(".")
            found.append(name)
    return found


@both
class HoistField(FieldTransform):
    """The whole becomes the only field of a new struct or map."""

    CONFIG = ConfigDef().define("field", ConfigType.STRING, REQUIRED, MEDIUM, "The name of the field.")

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        name = self.settings.text("field")
        schema = struct({name: column.schema})
        hides = not column.schema.optional and column.data.null_count
        mask = column.data.is_null() if hides else None
        made = pa.StructArray.from_arrays([column.data], fields=list(schema.arrow), mask=mask)
        return Column(schema, made)

    def plain(self, value: Any, row: int, records: Records) -> Any:
        return {self.settings.text("field"): value}


@both
class Flatten(FieldTransform):
    """Nested structs or maps become one, with names joined by a delimiter."""

    CONFIG = ConfigDef().define("delimiter", ConfigType.STRING, ".", MEDIUM, "What joins the names.")

    def column(self, column: Column, records: Records) -> Column:
        fields: list[tuple[str, Schema, Any]] = []
        self._collect(column, "", False, fields)
        return put_together(column, fields)

    def _collect(
        self, column: Column, prefix: str, optional: bool, found: list[tuple[str, Schema, Any]]
    ) -> None:
        assert column.schema is not None
        parts = taken_apart(column, "flattening", defaults=False)
        for one in column.schema.fields:
            name = f"{prefix}{self.settings.text('delimiter')}{one.name}" if prefix else one.name
            inner = Column(one.schema, parts[one.name])
            if one.schema.type is Type.MAP:
                raise SchemaError(f"Flatten does not support maps in records with a schema: field {name}")
            if one.schema.type is Type.STRUCT:
                self._collect(inner, name, optional or one.schema.optional, found)
            else:
                found.append(
                    (name, replace(one.schema, optional=optional or one.schema.optional), inner.data)
                )

    def plain(self, value: Any, row: int, records: Records) -> Any:
        if value is None:
            return None
        made: dict[str, Any] = {}
        self._collect_plain(require_map(value, "flattening"), "", made)
        return made

    def _collect_plain(self, value: dict[str, Any], prefix: str, made: dict[str, Any]) -> None:
        for key, one in value.items():
            name = f"{prefix}{self.settings.text('delimiter')}{key}" if prefix else key
            if isinstance(one, dict):
                self._collect_plain(one, name, made)
            else:
                made[name] = one


@both
class InsertField(FieldTransform):
    """Metadata of the record or a fixed text become fields."""

    NAMES = (
        "topic.field",
        "partition.field",
        "offset.field",
        "timestamp.field",
        "static.field",
        "static.value",
    )
    CONFIG = ConfigDef()
    for _name in NAMES:
        CONFIG.define(
            _name, ConfigType.STRING, None, MEDIUM, "Suffix ! for a required field, ? for an optional one."
        )
    CONFIG = with_null_setting(CONFIG)

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.inserted: list[tuple[str, str, bool]] = []  # what, name of the field, optional
        for setting in self.NAMES[:-1]:
            name = self.settings.text(setting)
            if name:
                bare = name[:-1] if name[-1] in "!?" else name
                self.inserted.append((setting.partition(".")[0], bare, not name.endswith("!")))
        if not self.inserted:
            raise invalid("topic.field", None, "No field insertion configured")
        if self.settings.text("static.field") and self.settings["static.value"] is None:
            raise invalid("static.value", None, "No value specified for static field")

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        parts = taken_apart(column, "field insertion", defaults=self.settings.flag(REPLACE_NULL))
        fields = [(one.name, one.schema, parts[one.name]) for one in column.schema.fields]
        for what, name, optional in self.inserted:
            if name in parts:
                raise SchemaError(f"the field {name!r} exists already in the struct")
            schema = SCHEMAS[what]
            data = self._data(what, records)
            fields.append((name, schema.as_optional() if optional else schema, data))
        return put_together(column, fields)

    def _data(self, what: str, records: Records) -> Any:
        count = len(records)
        if what == "topic":
            return records.topics.cast(pa.string())
        if what == "static":
            return pa.repeat(pa.scalar(self.settings.text("static.value"), pa.string()), count)
        found = getattr(records, f"{what}s")
        kind = SCHEMAS[what].arrow
        return pa.nulls(count, kind) if found is None else found.cast(kind)

    def plain(self, value: Any, row: int, records: Records) -> Any:
        if value is None:
            return None
        made = dict(require_map(value, "field insertion"))
        for what, name, _ in self.inserted:
            if what == "static":
                made[name] = self.settings.text("static.value")
            else:
                found = getattr(records, f"{what}s")
                made[name] = None if found is None else found[row].as_py()
        return made


SCHEMAS = {"topic": STRING, "partition": INT32, "offset": INT64, "timestamp": TIMESTAMP, "static": STRING}


@both
class ReplaceField(FieldTransform):
    """Fields are left out or renamed."""

    CONFIG = with_null_setting(
        ConfigDef()
        .define("exclude", ConfigType.LIST, [], MEDIUM, "Fields to leave out.", validator=entries())
        .define(
            "include",
            ConfigType.LIST,
            [],
            MEDIUM,
            "Fields to keep; all others are left out.",
            validator=entries(),
        )
        .define("renames", ConfigType.LIST, [], MEDIUM, "Pairs old:new.", validator=PAIRS)
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.excluded = set(self.settings.entries("exclude"))
        self.included = set(self.settings.entries("include"))
        self.renames = dict(one.split(":") for one in self.settings.entries("renames"))

    def keeps(self, name: str) -> bool:
        return name not in self.excluded and (not self.included or name in self.included)

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        parts = taken_apart(column, "field replacement", defaults=self.settings.flag(REPLACE_NULL))
        return put_together(
            column,
            [
                (self.renames.get(one.name, one.name), one.schema, parts[one.name])
                for one in column.schema.fields
                if self.keeps(one.name)
            ],
        )

    def plain(self, value: Any, row: int, records: Records) -> Any:
        if value is None:
            return None
        found = require_map(value, "field replacement")
        return {self.renames.get(name, name): one for name, one in found.items() if self.keeps(name)}


class ValueToKey(Transform):
    """The key becomes a struct or map of fields of the value."""

    JAVA_NAMES = ("org.apache.kafka.connect.transforms.ValueToKey",)
    CONFIG = with_null_setting(
        ConfigDef().define(
            "fields",
            ConfigType.LIST,
            REQUIRED,
            HIGH,
            "Fields of the value.",
            validator=entries(may_be_empty=False),
        )
    )

    def change(self, records: Records) -> Records:
        names = self.settings.entries("fields")
        values = records.values
        if values.schema is None:
            maps = [require_map(one, "copying fields from value to key") for one in values.data]
            return replace(
                records, keys=Column(None, [{name: one.get(name) for name in names} for one in maps])
            )
        if values.data.null_count:
            raise ValueError("a record without value has no fields that could be its key")
        parts = taken_apart(
            values, "copying fields from value to key", defaults=self.settings.flag(REPLACE_NULL)
        )
        fields = []
        for name in names:
            schema = values.schema.field(name)
            if schema is None:
                raise SchemaError(f"Field does not exist: {name}")
            fields.append((name, schema, parts[name]))
        return replace(records, keys=put_together(values, fields, struct()))


@both
class SetSchemaMetadata(FieldTransform):
    """The schema gets another name or version."""

    CONFIG = with_null_setting(
        ConfigDef()
        .define("schema.name", ConfigType.STRING, None, HIGH, "The name.")
        .define("schema.version", ConfigType.INT, None, HIGH, "The version.")
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        if self.settings["schema.name"] is None and self.settings["schema.version"] is None:
            raise invalid("schema.name", None, "Neither schema name nor version configured")

    def column(self, column: Column, records: Records) -> Column:
        assert column.schema is not None
        name, version = self.settings["schema.name"], self.settings["schema.version"]
        made = replace(
            column.schema,
            name=column.schema.name if name is None else name,
            version=column.schema.version if version is None else version,
        )
        return Column(
            made, column.data if made.arrow == column.schema.arrow else column.data.cast(made.arrow)
        )

    def plain(self, value: Any, row: int, records: Records) -> Any:
        if value is None:
            return None
        raise ValueError("Schema required for [updating schema metadata]")

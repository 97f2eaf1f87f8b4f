"""Debezium's transforms between change events and headers: names of changed fields, values of headers.

In: records of one schema. Out: headers with the names of fields, or values with those of headers as fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from barnabas.connect.config import REQUIRED, ConfigDef, ConfigType, Importance, one_of_any_case
from barnabas.connect.data import STRING, Column, DataError, Field, Header, Records, Schema, Type, array
from barnabas.connect.transforms.change_events import JAVA, is_envelope
from barnabas.connect.transforms.contract import SchemaError, Transform, with_column
from barnabas.connect.transforms.parts_of_columns import taken_apart

HIGH, LOW = Importance.HIGH, Importance.LOW
NAMES = array(STRING.as_optional(), optional=True)


class ExtractChangedRecordState(Transform):
    """Headers tell which fields of a row an update has changed, and which not."""

    JAVA_NAMES = (f"{JAVA}ExtractChangedRecordState",)
    on = "values"
    CONFIG = (
        ConfigDef()
        .define("header.changed.name", ConfigType.STRING, None, LOW, "The header with fields that changed.")
        .define("header.unchanged.name", ConfigType.STRING, None, LOW, "The header with those that did not.")
    )

    def change(self, records: Records) -> Records:
        if not is_envelope(records.values.schema):
            return records
        asked = [(self.settings.text(f"header.{word}.name"), word == "changed") for word in WORDS]
        wanted = [(name, replace(NAMES, name=name), is_changed) for name, is_changed in asked if name]
        before = records.headers if records.headers is not None else [()] * len(records)
        headers = []
        for given, fields, is_null in zip(
            before, compared(records.values), records.values.is_null().to_pylist(), strict=True
        ):
            made = [
                Header(name, [field for field, changed in fields if changed is is_changed], schema)
                for name, schema, is_changed in wanted
            ]
            headers.append(given if is_null else (*given, *made))
        return replace(records, headers=headers)


WORDS = ("changed", "unchanged")


def compared(values: Column) -> list[list[tuple[str, bool]]]:
    """Fields of the rows of each event, and whether they have changed; none where a row is missing."""
    assert values.schema is not None
    schema = values.schema.field("after")
    if schema is None or schema.type is not Type.STRUCT:
        raise SchemaError(f"the envelope {values.schema.name} has no struct `after`")
    parts = taken_apart(values, "comparing rows", defaults=False)
    rows = [Column(schema, parts[name]).pylist() for name in ("before", "after")]
    return [
        [] if old is None or new is None else [(name, not same(old[name], new[name])) for name in new]
        for old, new in zip(*rows, strict=True)
    ]


def same(left: Any, right: Any) -> bool:
    """Whether values are equal; NaN is equal to itself, as in Java."""
    return bool(left == right or (left != left and right != right))


class HeaderToValue(Transform):
    """Values of headers become fields of the value, also inside of its structs."""

    JAVA_NAMES = (f"{JAVA}HeaderToValue",)
    on = "values"
    CONFIG = (
        ConfigDef()
        .define("headers", ConfigType.LIST, REQUIRED, HIGH, "Names of headers.")
        .define("fields", ConfigType.LIST, REQUIRED, HIGH, "Their fields, in that order: name, struct.name.")
        .define("operation", ConfigType.STRING, REQUIRED, HIGH, "move: the headers go; copy: they stay.",
                validator=one_of_any_case("move", "copy"))
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._names = self.settings.entries("headers")
        self._paths = [each.split(".") for each in self.settings.entries("fields")]
        if len(self._names) != len(self._paths):
            raise SchemaError("'fields' config must have the same number of elements as 'headers' config.")
        self._moves = self.settings.text("operation").lower() == "move"

    def change(self, records: Records) -> Records:
        values, headers = records.values, records.headers
        rows = values.pylist()
        if headers is None or all(each is None for each in rows):
            return records
        if values.schema is None or values.schema.type is not Type.STRUCT:
            raise SchemaError("Only Struct objects supported for [Header field insertion]")
        found = [{each.name: each for each in of_record} for of_record in headers]
        chosen = [
            [] if row is None else [of_record.get(name) for name in self._names]
            for row, of_record in zip(rows, found, strict=True)
        ]
        shapes = {tuple(None if each is None else each.schema for each in one) for one in chosen if one}
        if len(shapes) > 1:
            raise DataError("records with different headers become values of different schemas")
        [shape] = shapes
        schema = values.schema
        for path, kind in zip(self._paths, shape, strict=True):
            schema = schema if kind is None else extended(schema, path, kind)
        made = [None if row is None else self._row(row, one) for row, one in zip(rows, chosen, strict=True)]
        records = with_column(records, "values", Column.of(made, schema))
        return replace(records, headers=self._left(headers, rows)) if self._moves else records

    def _row(self, row: Any, headers: Sequence[Header | None]) -> Any:
        for path, header in zip(self._paths, headers, strict=True):
            row = row if header is None else put(row, path, header.value)
        return row

    def _left(self, headers: Sequence[Any], rows: Sequence[Any]) -> list[Any]:
        return [
            given if row is None else tuple(each for each in given if each.name not in self._names)
            for given, row in zip(headers, rows, strict=True)
        ]


def extended(schema: Schema, path: Sequence[str], kind: Schema) -> Schema:
    """A struct with one more field, inside of others by its path."""
    name, *rest = path
    known = schema.field(name)
    if rest:
        inner = Schema(type=Type.STRUCT, optional=True) if known is None else known.as_required()
        kind = extended(inner, rest, kind)
    elif known is not None:
        if known.type is not kind.type:
            raise SchemaError(f"the value has a field {name} of type {known.type}, the header is {kind.type}")
        return schema
    fields = [Field(one.name, kind if one.name == name else one.schema) for one in schema.fields]
    return schema.with_fields(tuple(fields if known is not None else [*fields, Field(name, kind)]))


def put(row: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    if not rest:
        return {**row, name: value}
    if name in row and row[name] is None:
        raise DataError(f"the struct {name} is null: it takes no field {'.'.join(rest)}")
    return {**row, name: put(row.get(name) or {}, rest, value)}

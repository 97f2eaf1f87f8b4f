"""Debezium's transforms of change events: rows out of envelopes, and several tables as one.

An envelope is a struct whose schema has a name that ends with `.Envelope`, as events of change capture have.
Records of other schemas and of none pass as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from barnabas.connect.config import (
    REQUIRED,
    ConfigDef,
    ConfigType,
    Importance,
    one_of_any_case,
    regex,
)
from barnabas.connect.data import (
    OPTIONAL_STRING,
    STRING,
    Column,
    DataError,
    Field,
    Header,
    Records,
    Schema,
    Type,
)
from barnabas.connect.data.java_regex import java_pattern, java_replacement
from barnabas.connect.transforms.contract import SchemaError, Transform, Transformed, with_column
from barnabas.connect.transforms.parts_of_columns import (
    REPLACE_NULL,
    put_together,
    taken_apart,
    with_null_setting,
)
from barnabas.connect.transforms.routing import renamed

JAVA = "io.debezium.transforms."
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
MODES = ("tombstone", "drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
OWN_FIELDS = ("op", "ts_ms", "ts_us", "ts_ns")  # of the envelope; other simple names are of its source
DELETED = "__deleted"
SEVERAL = (
    "records of one schema go to several topics with schemas of their own: name the topics by predicates"
)


def is_envelope(schema: Schema | None) -> bool:
    return schema is not None and schema.type is Type.STRUCT and (schema.name or "").endswith(".Envelope")


@dataclass(frozen=True, slots=True)
class Added:
    """A field of the envelope that goes into the row or the headers: `op`, `table`, `source.ts_ms:time`."""

    path: tuple[str, ...]
    name: str

    @staticmethod
    def of(text: str, prefix: str) -> Added:
        where, _, alias = (each.strip() for each in text.partition(":"))
        struct_name, dot, name = where.rpartition(".")
        path = (struct_name, name) if dot else (where,) if where in OWN_FIELDS else ("source", where)
        return Added(path, prefix + (alias or where.replace(".", "_")))

    def of_column(self, envelope: Column) -> tuple[Schema, Any] | None:
        """Its schema and values; None if the envelope has no such field."""
        column = envelope
        for name in self.path:
            schema = column.schema.field(name) if column.schema is not None else None
            if schema is None:
                return None
            column = Column(schema, taken_apart(column, "adding fields", defaults=False)[name])
        assert column.schema is not None
        return column.schema.as_optional(), column.data


class ExtractNewRecordState(Transform):
    """Change events become the rows that they leave; deletes become what the mode says."""

    JAVA_NAMES = (f"{JAVA}ExtractNewRecordState",)
    on = "values"  # tombstones come by themselves
    CONFIG = with_null_setting(
        ConfigDef()
        .define("delete.tombstone.handling.mode", ConfigType.STRING, "tombstone", MEDIUM,
                "Deletes: tombstone keeps the tombstones behind them, drop drops both, rewrite keeps the old"
                " row with __deleted, rewrite-with-tombstone both, delete-to-tombstone makes tombstones.",
                validator=one_of_any_case(*MODES))
        .define("delete.handling.mode", ConfigType.STRING, "", LOW,
                "The former name, with drop.tombstones: drop, rewrite or none.",
                validator=one_of_any_case("drop", "rewrite", "none", ""))
        .define("drop.tombstones", ConfigType.BOOLEAN, True, LOW, "With delete.handling.mode.")
        .define("add.fields", ConfigType.LIST, "", LOW,
                "Fields of the envelope: op, table, source.ts_ms:time.")
        .define("add.fields.prefix", ConfigType.STRING, "__", LOW, "Before their names.")
        .define("add.headers", ConfigType.LIST, "", LOW, "Fields of the envelope that become headers.")
        .define("add.headers.prefix", ConfigType.STRING, "__", LOW, "Before their names.")
        .define("route.by.field", ConfigType.STRING, "", LOW, "A field of the row that names the topic.")
        .define("drop.fields.header.name", ConfigType.STRING, None, LOW,
                "A header with names of fields that are dropped, such as ExtractChangedRecordState makes.")
        .define("drop.fields.from.key", ConfigType.BOOLEAN, False, LOW, "Drop them from keys, too.")
        .define("drop.fields.keep.schema.compatible", ConfigType.BOOLEAN, True, LOW,
                "Drop only fields that are optional.")
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        text = self.settings.text
        self._mode = text("delete.tombstone.handling.mode").lower()
        former = text("delete.handling.mode").lower()
        if former and "delete.tombstone.handling.mode" not in config:
            drops = self.settings.flag("drop.tombstones")
            self._mode = {
                "drop": "drop" if drops else "tombstone",
                "rewrite": "rewrite" if drops else "rewrite-with-tombstone",
                "none": "delete-to-tombstone",
            }[former]
        self._fields = [
            Added.of(each, text("add.fields.prefix")) for each in self.settings.entries("add.fields")
        ]
        self._headers = [
            Added.of(each, text("add.headers.prefix")) for each in self.settings.entries("add.headers")
        ]

    @property
    def _keeps_tombstones(self) -> bool:
        return self._mode in ("tombstone", "rewrite-with-tombstone")

    def apply(self, records: Records) -> Transformed:
        values = records.values
        missing = values.is_null().to_pylist()
        if not is_envelope(values.schema):
            is_tombstone = values.schema is None or not values.schema.optional
            gone = is_tombstone and not self._keeps_tombstones
            kept = [row for row, is_missing in enumerate(missing) if not (is_missing and gone)]
            return Transformed(records if len(kept) == len(records) else records.take(kept), kept)
        ops = taken_apart(values, "reading operations")["op"].to_pylist()
        chosen = [
            row
            for row, op in enumerate(ops)
            if (self._keeps_tombstones if missing[row] else op != "t")
            and (op != "d" or self._mode not in ("drop", "tombstone"))
        ]
        return Transformed(self._rows(records.take(chosen), [ops[row] for row in chosen]), chosen)

    def _rows(self, records: Records, ops: list[Any]) -> Records:
        envelope = records.values
        row, deletes = self._row(envelope, ops)
        assert row.schema is not None
        fields = [
            (one.name, one.schema, part) for one, part in parts_of(row, self.settings.flag(REPLACE_NULL))
        ]
        count = len(fields)
        if self._mode.startswith("rewrite"):
            texts = pa.array(
                [None if op is None else "true" if op == "d" else "false" for op in ops], pa.string()
            )
            fields.append((DELETED, OPTIONAL_STRING, texts))
        dropped = self._dropped(records, ops)
        fields = [each for each in fields if not self._drops(dropped, each[0], each[1])]
        covers_added = dropped and "d" not in ops  # Debezium drops fields of deletes before it adds others
        for each in self._fields:
            if (found := each.of_column(envelope)) is not None and not (
                covers_added and self._drops(dropped, each.name, found[0])
            ):
                fields.append((each.name, *found))
        headers = self._with_headers(records)
        topics = self._topics(records, ops)
        schema = row.schema.as_required()
        is_same = len(fields) == count and not row.data.null_count and not deletes
        if is_same and not self.settings.flag(REPLACE_NULL):
            row = Column(schema, row.data)
        else:
            row = put_together(row, fields, schema)  # a null is a tombstone
        keys = self._key(records.keys, dropped)
        return replace(records, keys=keys, values=row, headers=headers, topics=topics)

    def _dropped(self, records: Records, ops: list[Any]) -> frozenset[str]:
        """The fields that a header names. DataError where records of one batch differ: the chain cuts it."""
        name = self.settings.text("drop.fields.header.name")
        if not name or records.headers is None:
            return frozenset()
        named = set()
        for headers, op in zip(records.headers, ops, strict=True):
            found = next((each.value for each in reversed(headers) if each.name == name), None)
            if op is not None:
                named.add((frozenset(found or ()), op == "d"))
        if len(named) > 1:
            raise DataError("records whose headers drop different fields become rows of different schemas")
        return next((found for found, _ in named), frozenset())

    def _drops(self, dropped: frozenset[str], name: str, schema: Schema) -> bool:
        keeps = self.settings.flag("drop.fields.keep.schema.compatible") and not schema.optional
        return name in dropped and not keeps

    def _key(self, keys: Column, dropped: frozenset[str]) -> Column:
        schema = keys.schema
        if not dropped or not self.settings.flag("drop.fields.from.key") or schema is None:
            return keys
        if schema.type is not Type.STRUCT:
            return keys
        parts = taken_apart(keys, "dropping fields of keys", defaults=False)
        left = [one for one in schema.fields if not self._drops(dropped, one.name, one.schema)]
        return put_together(keys, [(one.name, one.schema, parts[one.name]) for one in left])

    def _row(self, envelope: Column, ops: list[Any]) -> tuple[Column, bool]:
        """The rows after the changes, or before deletes that are kept; and whether deletes are null."""
        assert envelope.schema is not None
        schema = envelope.schema.field("after")
        if schema is None or schema.type is not Type.STRUCT:
            raise SchemaError(f"the envelope {envelope.schema.name} has no struct `after`")
        parts = taken_apart(envelope, "extracting rows", defaults=False)
        after = parts["after"]
        deletes = [row for row, op in enumerate(ops) if op == "d"]
        if not deletes or not self._mode.startswith("rewrite"):
            return Column(schema, after), bool(deletes)
        return left_or_lost(envelope, ops), False

    def _with_headers(self, records: Records) -> list[Any] | None:
        added = [(each.name, each.of_column(records.values)) for each in self._headers]
        columns = [
            (name, found[0], Column(found[0], found[1]).pylist())
            for name, found in added
            if found is not None
        ]
        if not columns:
            return records.headers
        given = records.headers if records.headers is not None else [()] * len(records)
        missing = records.values.is_null().to_pylist()
        return [
            before
            if is_missing
            else (*before, *(Header(name, values[row], schema) for name, schema, values in columns))
            for row, (before, is_missing) in enumerate(zip(given, missing, strict=True))
        ]

    def _topics(self, records: Records, ops: list[Any]) -> Any:
        name = self.settings.text("route.by.field")
        if not name:
            return records.topics
        row = left_or_lost(records.values, ops)
        assert row.schema is not None
        if row.schema.field(name) is None:
            raise SchemaError(f"route.by.field {name!r}: rows have {', '.join(row.schema.field_names)}")
        found = taken_apart(row, "routing")[name].to_pylist()
        given = records.topics.to_pylist()
        return pa.array(
            [old if new is None else str(new) for old, new in zip(given, found, strict=True)], pa.string()
        )


def left_or_lost(envelope: Column, ops: list[Any]) -> Column:
    """The rows after changes, and those before deletes."""
    assert envelope.schema is not None
    schema = envelope.schema.field("after")
    parts = taken_apart(envelope, "extracting rows", defaults=False)
    places = [row + len(ops) if op == "d" else row for row, op in enumerate(ops)]
    before, after = parts["before"], parts["after"]
    if before.type != after.type:
        raise SchemaError("`before` and `after` of the envelope have different schemas")
    both = pa.concat_arrays([after, before])
    return Column(schema, both.take(pa.array(places, pa.int64())))


def parts_of(row: Column, defaults: bool) -> list[tuple[Field, Any]]:
    assert row.schema is not None
    parts = taken_apart(row, "extracting rows", defaults=defaults)
    return [(one, parts[one.name]) for one in row.schema.fields]


class ByLogicalTableRouter(Transform):
    """Events of several tables go to one topic; keys get the table that they come from."""

    JAVA_NAMES = (f"{JAVA}ByLogicalTableRouter",)
    CONFIG = (
        ConfigDef()
        .define("topic.regex", ConfigType.STRING, REQUIRED, LOW, "Topics of the tables.", validator=regex())
        .define("topic.replacement", ConfigType.STRING, REQUIRED, LOW, "The topic, with $1 for groups.")
        .define("key.enforce.uniqueness", ConfigType.BOOLEAN, True, LOW, "Add the table to keys.")
        .define("key.field.name", ConfigType.STRING, "__dbz__physicalTableIdentifier", LOW, "That field.")
        .define("key.field.regex", ConfigType.STRING, None, LOW, "What of the topic is its value.")
        .define("key.field.replacement", ConfigType.STRING, None, LOW, "The value, with $1 for groups.")
        .without_effect(
            {
                "schema.name.adjustment.mode": ("none", "names of schemas are not changed"),
                "logical.table.cache.size": ("16", "nothing is cached"),
            }
        )
    )

    def configure(self, config: Mapping[str, str]) -> None:
        if "topic.regex" in config:
            config = {**config, "topic.regex": str(java_pattern(config["topic.regex"]).pattern)}
        super().configure(config)
        self._pattern = re.compile(self.settings.text("topic.regex"))
        table = self.settings.text("key.field.regex")
        self._table = java_pattern(table) if table else None

    def _topic(self, old: str) -> str | None:
        found = self._pattern.fullmatch(old)
        return None if found is None else java_replacement(self.settings.text("topic.replacement"), found)

    def _table_of(self, topic: str) -> str:
        found = self._table.fullmatch(topic) if self._table is not None else None
        return (
            topic if found is None else java_replacement(self.settings.text("key.field.replacement"), found)
        )

    def change(self, records: Records) -> Records:
        old = records.topics.to_pylist()
        new = {topic: self._topic(topic) for topic in dict.fromkeys(old)}
        if not any(each is not None for each in new.values()):
            return records
        names = set(new.values())
        if len(names) > 1:
            raise SchemaError(SEVERAL)
        [topic] = names
        assert topic is not None
        made = replace(records, topics=renamed(records.topics, lambda _: topic))
        if records.keys.schema is not None and not self._all_null(records.keys):
            made = with_column(made, "keys", self._key(records.keys, topic, old))
        if is_envelope(records.values.schema):
            made = with_column(made, "values", self._envelope(records.values, topic))
        return made

    @staticmethod
    def _all_null(column: Column) -> bool:
        return bool(column.data.null_count == len(column))

    def _key(self, keys: Column, topic: str, old: list[str]) -> Column:
        assert keys.schema is not None
        schema = replace(keys.schema, name=f"{topic}.Key")
        parts = taken_apart(keys, "updating keys", defaults=False)
        fields = [(one.name, one.schema, parts[one.name]) for one in keys.schema.fields]
        if self.settings.flag("key.enforce.uniqueness"):
            tables = {each: self._table_of(each) for each in dict.fromkeys(old)}
            values = pa.array([tables[each] for each in old], pa.string())
            fields.append((self.settings.text("key.field.name"), STRING, values))
        return put_together(keys, fields, schema)

    def _envelope(self, values: Column, topic: str) -> Column:
        """The same columns; schemas have the names of the new topic."""
        assert values.schema is not None
        parts = tuple(
            Field(one.name, replace(one.schema, name=f"{topic}.Value"))
            if one.name in ("before", "after")
            else one
            for one in values.schema.fields
        )
        return Column(replace(values.schema, name=f"{topic}.Envelope", fields=parts), values.data)

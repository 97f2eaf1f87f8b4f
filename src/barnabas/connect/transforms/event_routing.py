"""Debezium's transforms that choose a partition by values of change events, and that drop schema changes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from barnabas.connect.config import REQUIRED, ConfigDef, ConfigType, Importance, at_least, one_of_any_case
from barnabas.connect.data import DECIMAL_CONTEXT, Column, DataError, Records, Schema, Type
from barnabas.connect.transforms.change_events import JAVA, is_envelope
from barnabas.connect.transforms.contract import Transform, Transformed

HIGH, LOW = Importance.HIGH, Importance.LOW
CHANGE = "change"  # the row after a change, or before a delete
KINDS = ("CREATE", "ALTER", "DROP", "DATABASE")
INT_MAX = 2**31 - 1


class PartitionRouting(Transform):
    """Events go to partitions by the hashes of some of their fields, as Java computes them."""

    JAVA_NAMES = (f"{JAVA}partitions.PartitionRouting",)
    on = "values"
    CONFIG = (
        ConfigDef()
        .define("partition.payload.fields", ConfigType.LIST, REQUIRED, HIGH,
                "Fields: change.name, after.name, source.table; change is after, or before of deletes.")
        .define("partition.topic.num", ConfigType.INT, REQUIRED, HIGH, "The partitions of the topic.",
                validator=at_least(1))
        .define("partition.hash.function", ConfigType.STRING, "java", LOW, "java; murmur is not known.",
                validator=one_of_any_case("java"))
    )  # fmt: skip

    def change(self, records: Records) -> Records:
        values = records.values
        if not is_envelope(values.schema):
            return records
        assert values.schema is not None
        count = self.settings.integer("partition.topic.num")
        paths = [each.split(".") for each in self.settings.entries("partition.payload.fields")]
        given = [None] * len(records) if records.partitions is None else records.partitions.to_pylist()
        found = []
        for before, event in zip(given, values.pylist(), strict=True):
            chosen = self._partition(event, values.schema, paths, count)
            found.append(before if chosen is None else chosen)
        return replace(records, partitions=pa.array(found, pa.int32()))

    def _partition(self, event: Any, schema: Schema, paths: list[list[str]], count: int) -> int | None:
        if event is None or event["op"] in ("t", "m"):
            return None
        hashes = [java_hash(*found) for path in paths if (found := value_at(event, schema, path)) is not None]
        if not hashes:
            return None
        total = sum(hashes) & INT_MAX
        return (0 if total == INT_MAX else total) % count


def value_at(event: Any, schema: Schema, path: list[str]) -> tuple[Any, Schema] | None:
    """A value with its schema; None where the event has no such field."""
    names = [("before" if event["op"] == "d" else "after") if name == CHANGE else name for name in path]
    found: Any = event
    for name in names:
        part = schema.field(name.strip()) if schema.type is Type.STRUCT else None
        if part is None or found is None:
            return None
        found, schema = found[name.strip()], part
    if found is None:
        found = schema.default
    return None if found is None else (found, schema)


def java_hash(value: Any, schema: Schema) -> int:
    """`hashCode()` of a value as Java has it."""
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, str):
        return text_hash(value)
    if isinstance(value, int):
        return folded(value) if schema.type is Type.INT64 else value
    if isinstance(value, float):
        if schema.type is Type.FLOAT32:
            return int(struct.unpack(">i", struct.pack(">f", value))[0])
        return folded(struct.unpack(">q", struct.pack(">d", value))[0])
    if isinstance(value, Decimal):
        unscaled = int(value.scaleb(schema.scale, DECIMAL_CONTEXT))
        return signed(31 * number_hash(unscaled) + schema.scale)
    if isinstance(value, datetime | date | time):
        return folded(millis(value))
    raise DataError(
        f"partition.payload.fields: a value of type {schema.type} has no hash that stays the same"
    )


def text_hash(text: str) -> int:
    found = 0
    for unit in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit[0]) & 0xFFFFFFFF
    return signed(found)


def number_hash(number: int) -> int:
    """Of a BigInteger: its words of 32 bits from the highest on."""
    data = abs(number).to_bytes((abs(number).bit_length() + 31) // 32 * 4, "big")
    found = 0
    for (word,) in struct.iter_unpack(">I", data):
        found = (31 * found + word) & 0xFFFFFFFF
    return signed(found * (-1 if number < 0 else 1))


def folded(number: int) -> int:
    bits = number & 0xFFFFFFFFFFFFFFFF
    return signed((bits ^ (bits >> 32)) & 0xFFFFFFFF)


def signed(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number > INT_MAX else number


def millis(value: datetime | date | time) -> int:
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    step = (value if value.tzinfo else value.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (step.days * 86_400 + step.seconds) * 1000 + step.microseconds // 1000


class SchemaChangeEventFilter(Transform):
    """Records of the topic of schema changes are dropped by their kind; others pass."""

    JAVA_NAMES = (f"{JAVA}SchemaChangeEventFilter",)
    on = "values"
    CONFIG = ConfigDef().define(
        "schema.change.event.exclude.list", ConfigType.LIST, REQUIRED, HIGH, f"Kinds: {', '.join(KINDS)}."
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._excluded = {each.upper() for each in self.settings.entries("schema.change.event.exclude.list")}

    def apply(self, records: Records) -> Transformed:
        kept = [row for row, kind in enumerate(kinds(records.values)) if kind not in self._excluded]
        return Transformed(records if len(kept) == len(records) else records.take(kept), kept)


def kinds(values: Column) -> list[str | None]:
    """The kind of each schema change; None for other records."""
    schema = values.schema
    if schema is None or not (schema.name or "").endswith((".SchemaChangeValue", ".SchemaChangeKey")):
        return [None] * len(values)
    found: list[str | None] = []
    for each in values.pylist():
        changes = [] if each is None else each.get("tableChanges") or []
        found.append(None if each is None else str(changes[0]["type"]) if changes else "DATABASE")
    return found

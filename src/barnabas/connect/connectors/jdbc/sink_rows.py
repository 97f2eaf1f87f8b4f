"""Records as rows of a table: which fields are keys, which are columns, and their values.

In: schemas of a key and a value, settings. Out: a `RowPlan`, and rows of it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.databases.dialect import Dialect
from barnabas.connect.connectors.jdbc.sink_settings import KAFKA_COLUMNS
from barnabas.connect.data import INT32, INT64, STRING, Record, Schema, Type
from barnabas.connect.plugins import ConnectError

Binds = Mapping[str, Callable[[datetime], datetime]]
FLATTEN = "put the transform org.apache.kafka.connect.transforms.Flatten$Value before the sink"


@dataclass(frozen=True, slots=True)
class RowPlan:
    """How records of these schemas become rows: keys first, then other columns."""

    pk_mode: str
    keys: tuple[str, ...]
    others: tuple[str, ...]
    schemas: Mapping[str, Schema]

    @staticmethod
    def of(settings: Settings, topic: str, key: Schema | None, value: Schema | None) -> RowPlan:
        mode = settings.text("pk.mode").lower()
        wanted = settings.entries("pk.fields")
        if value is not None and value.type is not Type.STRUCT:
            raise ConnectError(
                f"{topic}: the value is {value.type}, but the sink needs a struct with a schema"
            )
        fields = {one.name: one.schema for one in value.fields} if value is not None else {}
        keys = key_fields(mode, wanted, topic, key, fields)
        allowed = set(settings.entries("fields.whitelist"))
        others = {
            name: schema
            for name, schema in fields.items()
            if name not in keys and (not allowed or name in allowed)
        }
        if not keys and not others:
            raise ConnectError(f"{topic}: no fields are left for the table: look at fields.whitelist")
        return RowPlan(mode, tuple(keys), tuple(others), {**keys, **others})

    def values(self, record: Record, binds: Binds, *, replaces: bool = True) -> list[Any]:
        """The row of a record: keys, then others. `binds` gives the form of a time in each column."""
        value = record.value or {}
        row = self.key_values(record, binds)
        return row + [
            bound(value.get(each), self.schemas[each], binds[each], replaces) for each in self.others
        ]

    def key_values(self, record: Record, binds: Binds) -> list[Any]:
        if self.pk_mode == "kafka":
            return [record.topic, record.partition, record.offset]
        if self.pk_mode == "record_key":
            given = record.key if isinstance(record.key, dict) else {self.keys[0]: record.key}
            if record.key is None:
                raise ConnectError("pk.mode=record_key: the record has no key")
        else:
            given = record.value or {}
        return [bound(given.get(each), self.schemas[each], binds[each]) for each in self.keys]


def key_fields(
    mode: str, wanted: Sequence[str], topic: str, key: Schema | None, fields: Mapping[str, Schema]
) -> dict[str, Schema]:
    """The primary key as `pk.mode` and `pk.fields` say."""
    if mode == "none":
        return {}
    if mode == "kafka":
        names = list(wanted) or list(KAFKA_COLUMNS)
        return dict(zip(names, (STRING, INT32, INT64), strict=True))
    found = dict(fields)
    if mode == "record_key":
        if key is None:
            raise ConnectError(
                f"{topic}: pk.mode=record_key needs keys with a schema: a struct, or one value with"
                " one name in"
                " pk.fields; look at key.converter"
            )
        if key.type is not Type.STRUCT:
            if len(wanted) != 1:
                raise ConnectError(f"{topic}: the key is {key.type}: name its column by pk.fields (one name)")
            return {wanted[0]: key}
        found = {one.name: one.schema for one in key.fields}
    names = list(wanted) or list(found)
    missing = [each for each in names if each not in found]
    if missing:
        where = "key" if mode == "record_key" else "value"
        raise ConnectError(
            f"{topic}: pk.fields names {', '.join(missing)}, but the {where} has {', '.join(found)}"
        )
    return {each: found[each] for each in names}


def bound(value: Any, schema: Schema, bind: Callable[[datetime], datetime], replaces: bool = True) -> Any:
    """A value as drivers take it."""
    if value is None:
        value = schema.default if replaces else None
    if isinstance(value, datetime):
        return bind(value.replace(tzinfo=value.tzinfo or UTC))
    if isinstance(value, list) and schema.value is not None:
        return [bound(each, schema.value, bind, replaces) for each in value]
    return value


def sql_type(dialect: Dialect, name: str, schema: Schema, *, is_key: bool) -> str:
    """The type of a new column."""
    if schema.logical is not None:
        word = dialect.TYPES[schema.logical.rpartition(".")[2]]
        return word.format(scale=schema.scale) if "{" in word else word
    if schema.type is Type.ARRAY and dialect.HAS_ARRAYS and schema.value is not None:
        return f"{sql_type(dialect, name, schema.value, is_key=False)}[]"
    if schema.type not in dialect.TYPES:
        raise ConnectError(
            f"the field {name} is {schema.type}, an unsupported type for {dialect.NAME}: {FLATTEN}"
        )
    return dialect.KEY_TEXT if is_key and schema.type is Type.STRING else dialect.TYPES[schema.type]


def create_table(dialect: Dialect, name: str, plan: RowPlan) -> str:
    parts = [
        column(dialect, each, plan.schemas[each], is_key=each in plan.keys)
        for each in (*plan.keys, *plan.others)
    ]
    if plan.keys:
        parts.append(f"PRIMARY KEY ({', '.join(map(dialect.quoted, plan.keys))})")
    return f"CREATE TABLE {name} ({', '.join(parts)})"


def column(dialect: Dialect, name: str, schema: Schema, *, is_key: bool) -> str:
    """A column of CREATE TABLE or ALTER TABLE."""
    null = "" if schema.optional and not is_key else " NOT NULL"
    if schema.default is not None and not is_key:
        null = f" DEFAULT {literal(dialect, schema.default)}"
    elif null == "" and not is_key:
        null = " NULL"
    return f"{dialect.quoted(name)} {sql_type(dialect, name, schema, is_key=is_key)}{null}"


def literal(dialect: Dialect, value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, bytes):
        return dialect.BYTES.format(value.hex())
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    return "'" + str(value).replace("'", "''") + "'"

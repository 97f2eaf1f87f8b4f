"""Debezium's envelope: schemas of keys and values of a table, and changes as records.

In: columns of a table with their schemas, changes as tuples. Out: Records with one struct a change: before,
after, source, transaction, op, ts_ms, ts_us, ts_ns. A delete is followed by a tombstone. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.data import (
    INT64,
    OPTIONAL_INT64,
    STRING,
    Column,
    Field,
    Header,
    Headers,
    Records,
    Schema,
    Type,
    struct,
)

SNAPSHOTS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
SNAPSHOT = Schema(
    type=Type.STRING,
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": SNAPSHOTS},
    default="false",
)
TRANSACTION = struct(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    name="event.block",
    version=1,
    optional=True,
)
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"
UNKEYED = "t"  # a truncated table has no key
Row = tuple[Any, ...]
Apply = Callable[[Any], Any]


class Change(NamedTuple):
    """One change of a table. Rows have the values of all columns; `source` those of the source struct."""

    op: str
    before: Row | None
    after: Row | None
    source: Mapping[str, Any]
    headers: Headers = ()
    transaction: Mapping[str, Any] | None = None  # id, total_order, data_collection_order


@dataclass(frozen=True)
class TableSchemas:
    """A captured table: where its events go, and their schemas."""

    topic: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    source: Schema
    tombstones: bool = True
    headers: Headers = ()  # of all events
    told: tuple[tuple[Schema, Apply | None], ...] = ()  # of each field as rows show it; none: as it is
    schema_name: Callable[[str], str] = str
    field_name: Callable[[str], str] = str
    skips_unchanged: bool = False  # updates that leave all captured columns alone

    @cached_property
    def row(self) -> Schema:
        shown = [each for each, _ in self.told] or [one.schema for one in self.fields]
        parts = tuple(
            Field(self.field_name(one.name), each) for one, each in zip(self.fields, shown, strict=True)
        )
        return Schema(type=Type.STRUCT, name=self._named("Value"), fields=parts, optional=True)

    @cached_property
    def key(self) -> Schema | None:
        by_name = dict(self.fields)
        parts = tuple(Field(self.field_name(each), by_name[each]) for each in self.keys)
        return Schema(type=Type.STRUCT, name=self._named("Key"), fields=parts) if parts else None

    def _named(self, part: str) -> str:
        return self.schema_name(f"{self.topic}.{part}")

    def shown(self, row: Row | None) -> Row | None:
        """A row behind its masks."""
        if row is None or not self.is_masked:
            return row
        pairs = zip(row, self.told, strict=True)
        return tuple(value if apply is None else apply(value) for value, (_, apply) in pairs)

    @cached_property
    def is_masked(self) -> bool:
        return any(apply is not None for _, apply in self.told)

    @cached_property
    def envelope(self) -> Schema:
        parts = {
            "before": self.row,
            "after": self.row,
            "source": self.source,
            "transaction": TRANSACTION,
            "op": STRING,
            "ts_ms": OPTIONAL_INT64,
            "ts_us": OPTIONAL_INT64,
            "ts_ns": OPTIONAL_INT64,
        }
        return struct(parts, name=self._named("Envelope"), version=2)

    @cached_property
    def key_places(self) -> tuple[int, ...]:
        names = [one.name for one in self.fields]
        return tuple(names.index(each) for each in self.keys)

    def key_of(self, row: Row | None) -> Row:
        return tuple(None if row is None else row[place] for place in self.key_places)

    # -- changes -----------------------------------------------------------------------------------

    def expanded(self, change: Change) -> list[Change]:
        """The events of a change: a changed key is a delete of the old row and a create of the new one."""
        if change.op != "u" or change.before is None:
            return [change]
        if self.skips_unchanged and self.shown(change.before) == self.shown(change.after):
            return []
        if not self.keys:
            return [change]
        old, new = self.key_of(change.before), self.key_of(change.after)
        if old == new:
            return [change]
        return [
            change._replace(op="d", after=None, headers=(self._header(NEW_KEY, new),)),
            change._replace(op="c", before=None, headers=(self._header(OLD_KEY, old),)),
        ]

    def _header(self, name: str, key: Row) -> Header:
        names = [self.field_name(each) for each in self.keys]
        return Header(name, dict(zip(names, key, strict=True)), self.key)

    def records(self, changes: Sequence[Change], now_ns: int, positions: Sequence[Any]) -> Records:
        """Changes as records, tombstones in their places."""
        full = [one for change in changes for one in self.expanded(change)]
        indices: list[int | None] = []
        for index, change in enumerate(full):
            indices.append(index)
            if change.op == "d" and self.tombstones:
                indices.append(None)
        data = self._envelopes(full, now_ns).take(pa.array(indices, pa.int64()))
        owners = [each if each is not None else indices[place - 1] for place, each in enumerate(indices)]
        headers = [full[each or 0].headers + self.headers for each in owners]
        return Records.of(
            self.topic,
            Column(self.envelope, data),
            self._keys(full).take(pa.array(owners, pa.int64())),
            headers=headers if any(headers) else None,
            positions=list(positions),
        )

    def _keys(self, changes: Sequence[Change]) -> Column:
        if self.key is None:
            return Column.nulls(len(changes))
        rows = [self.key_of(each.before if each.op == "d" else each.after) for each in changes]
        keyed = [None if each.op in UNKEYED else row for each, row in zip(changes, rows, strict=True)]
        return Column(self.key, structs(keyed, self.key))

    def _envelopes(self, changes: Sequence[Change], now_ns: int) -> pa.Array:
        count = len(changes)
        kind = self.envelope.arrow
        now = [pa.repeat(pa.scalar(now_ns // unit, pa.int64()), count) for unit in (1_000_000, 1000, 1)]
        parts = [
            structs([self.shown(each.before) for each in changes], self.row),
            structs([self.shown(each.after) for each in changes], self.row),
            pa.array([each.source for each in changes], self.source.arrow),
            pa.array([each.transaction for each in changes], TRANSACTION.arrow),
            pa.array([each.op for each in changes], pa.string()),
            *now,
        ]
        return pa.StructArray.from_arrays(
            parts, fields=[kind.field(place) for place in range(kind.num_fields)]
        )


def structs(rows: Sequence[Row | None], schema: Schema) -> pa.Array:
    """Rows as an array of structs, column by column; None is null."""
    kind = schema.arrow
    empty: Row = (None,) * len(schema.fields)
    columns = list(zip(*(empty if row is None else row for row in rows), strict=True))
    arrays = [pa.array(values, one.schema.arrow) for values, one in zip(columns, schema.fields, strict=True)]
    fields = [kind.field(place) for place in range(kind.num_fields)]
    mask = pa.array([row is None for row in rows], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

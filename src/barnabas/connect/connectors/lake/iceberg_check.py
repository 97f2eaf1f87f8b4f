"""The records that Iceberg tables cannot hold, found on executors before a batch is written.

In: the columns of the tables, the settings of the sink, decoded records. Out: the rows that do not fit one of
their tables, each with the reason. Such a record is written to none of them. Does not know: catalogs, Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from barnabas.connect.connectors.lake.iceberg_types import loses, widens
from barnabas.connect.connectors.lake.lake_rows import names_by_case
from barnabas.connect.connectors.lake.misfits import Misfits, Rules, add, misfits_of_columns, places_of


def takes(mine: pa.DataType, there: pa.DataType) -> bool:
    """Whether a column may hold such values; integers and decimals are looked at one by one."""
    return not loses(mine, there)


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, as a check needs them. `schema` is None until records make it."""

    name: str
    schema: pa.Schema | None
    keys: tuple[str, ...] = ()
    route: str = ""


@dataclass(frozen=True)
class IcebergCheck:
    tables: Mapping[str, TableColumns]  # by name
    route: tuple[str, ...] = ()  # the path of the field that chooses tables
    is_dynamic: bool = False  # the field is the name of the table
    creates: bool = False
    evolves: bool = False
    any_case: bool = False
    upserts: bool = False
    operation: tuple[str, ...] = ()  # the path of the field with the operation
    keys: tuple[str, ...] = ()  # of tables that records make

    def __call__(self, records: pa.Table) -> Misfits:
        found: Misfits = {}
        for table, rows in self._routed(records, found):
            if rows:
                some = records if len(rows) == records.num_rows else records.take(pa.array(rows))
                own = self._of_table(table, some)
                add(found, {rows[place]: text for place, text in own.items()})
        return found

    def _routed(self, records: pa.Table, found: Misfits) -> Iterator[tuple[TableColumns, list[int]]]:
        """Tables and the rows that go there."""
        if not self.route:
            everything = list(range(records.num_rows))
            yield from ((table, everything) for table in self.tables.values())
            return
        column = field_at(records.column("value").combine_chunks(), self.route)
        names = [] if column is None else column.cast(pa.string()).to_pylist()
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            if name is not None:
                rows.setdefault(name.lower() if self.is_dynamic else name, []).append(row)
        if not self.is_dynamic:
            for table in self.tables.values():
                matches = [name for name in rows if re.search(f"^(?:{table.route})$", name)]
                yield table, sorted(row for name in matches for row in rows[name])
            return
        for name, mine in rows.items():
            known = self.tables.get(name)
            at = ".".join(self.route)
            if "." not in name.strip("."):
                text = f"{at} is {name!r}: the name of a table is namespace.table"
                add(found, dict.fromkeys(mine, text))
            elif known is not None:
                yield known, mine
            elif self.creates:
                yield TableColumns(name, None, self.keys), mine
            else:
                text = f"{at} names {name}, a table that is not there: create it, or set"
                add(found, dict.fromkeys(mine, f"{text} iceberg.tables.auto-create-enabled"))

    def _of_table(self, table: TableColumns, records: pa.Table) -> Misfits:
        key, value = (records.column(side).combine_chunks() for side in ("key", "value"))
        columns, found = columns_of(value, self.operation), Misfits()
        if self.upserts:
            is_deleted = self._deletes(value)
            add(found, self._keys(table, key, value, columns, is_deleted))
        else:
            is_deleted = value.is_null()
        rows = places_of(pc.invert(is_deleted))
        if rows:
            place = pa.array(rows)
            some = {name: column.take(place) for name, column in columns.items()}
            own = self._of_columns(table, some, len(rows))
            add(found, {rows[row]: text for row, text in own.items()})
        return found

    def _of_columns(self, table: TableColumns, columns: Mapping[str, Any], count: int) -> Misfits:
        clash = names_by_case(columns)
        if clash:
            return dict.fromkeys(range(count), clash)
        if table.schema is None:
            return {}
        known = {self._named(name) for name in table.schema.names}
        if not self.evolves and not known & {self._named(name) for name in columns}:
            text = f"the table {table.name} has none of the fields {', '.join(columns)}"
            return dict.fromkeys(range(count), text)
        there = table.schema
        if self.upserts:  # keys have their own check: they may be in the key of the record
            there = pa.schema(
                [each.with_nullable(each.nullable or each.name in table.keys) for each in there]
            )
        return misfits_of_columns(columns, there, self._rules(), count)

    def _keys(self, table: TableColumns, key: Any, value: Any, columns: Any, is_deleted: Any) -> Misfits:
        """Rows whose key is not there, or does not fit."""
        found: Misfits = {}
        key_fields = columns_of(key, ()) if kinds.is_struct(key.type) else {}
        is_tombstone = value.is_null()
        has_keys = set(table.keys) <= set(key_fields)
        if not has_keys:
            if not self.operation:  # with one, a tombstone follows the record that deletes
                text = (
                    f"the record has no value, and its key has no {', '.join(table.keys)}: no row is deleted"
                )
                add(found, dict.fromkeys(places_of(is_tombstone), text))
            key_fields = {}
        lacking = [name for name in table.keys if name not in columns]
        if lacking:
            text = f"id-columns names {', '.join(lacking)}, and the record has {', '.join(columns)}"
            add(found, dict.fromkeys(places_of(pc.invert(is_tombstone)), text))
        for name in table.keys:
            own = columns[name] if name in columns else pa.nulls(len(value))
            other = key_fields.get(name)
            is_empty = own.is_null() if other is None else pc.and_(own.is_null(), other.is_null())
            if not has_keys:
                is_empty = pc.and_(is_empty, pc.invert(is_tombstone))
            add(found, dict.fromkeys(places_of(is_empty), f"{name} is a column of the key, and null"))
            field = None if table.schema is None else self._field(table.schema, name)
            if field is None:
                continue
            parts = [(own, pc.and_(own.is_valid(), is_deleted))]
            if other is not None:
                parts.append((other, pc.and_(own.is_null(), other.is_valid())))
            for column, mask in parts:
                rows = places_of(mask)
                if rows:
                    some = {name: column.take(pa.array(rows))}
                    misfits = misfits_of_columns(some, pa.schema([field]), self._rules(), len(rows))
                    add(found, {rows[row]: text for row, text in misfits.items()})
        return found

    def _deletes(self, value: Any) -> Any:
        """A mask of the records that delete their row: no value, or the operation D."""
        found = value.is_null()
        operation = field_at(value, self.operation) if self.operation else None
        if operation is None or not (
            kinds.is_string(operation.type) or kinds.is_large_string(operation.type)
        ):
            return found
        deletes = pc.fill_null(pc.starts_with(pc.utf8_upper(operation), "D"), False)
        return pc.or_(found, deletes)

    def _rules(self) -> Rules:
        return Rules(takes, str, widens if self.evolves else None, any_case=self.any_case)

    def _named(self, name: str) -> str:
        return name.lower() if self.any_case else name

    def _field(self, schema: pa.Schema, name: str) -> pa.Field | None:
        return next((each for each in schema if self._named(each.name) == self._named(name)), None)


def columns_of(data: Any, without: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a struct, but the one at the path `without`; another value is the column `value`."""
    if not kinds.is_struct(data.type) or not data.type.num_fields:
        return {"value": data}
    names = [data.type.field(index).name for index in range(data.type.num_fields)]
    found = dict(zip(names, data.flatten(), strict=True))
    found.pop(".".join(without), None)
    return found


def field_at(data: Any, path: tuple[str, ...]) -> Any | None:
    """The field of a struct inside of structs; None if there is none."""
    for name in path:
        place = data.type.get_field_index(name) if kinds.is_struct(data.type) else -1
        if place < 0:
            return None
        data = data.flatten()[place]
    return data

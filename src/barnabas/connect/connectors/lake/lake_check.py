"""The records that a Delta table cannot hold, found on executors before a batch is written.

In: the columns of the tables, the settings of the sink, decoded records. Out: the rows that do not fit, each
with the reason: no key, a key or a value without the fields that it needs, columns that the table lacks and
may not get, types and values that do not fit. Does not know: Spark, commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from barnabas.connect.config import Settings
from barnabas.connect.connectors.lake.lake_constraints import Broken
from barnabas.connect.connectors.lake.lake_rows import names_by_case
from barnabas.connect.connectors.lake.misfits import Misfits, Rules, add, misfits_of_columns, places_of

WIDER = {
    pa.int8(): (pa.float32(), pa.float64()),
    pa.int16(): (pa.float32(), pa.float64()),
    pa.int32(): (pa.float64(),),
    pa.float32(): (pa.float64(),),
    pa.date32(): (pa.timestamp("us", "UTC"),),
}
NO_KEY = "pk.mode=record_key: the record has no key"
LACKS = "the table has no {}, and auto.evolve is false"


def takes(mine: pa.DataType, there: pa.DataType) -> bool:
    """Whether Delta's column may hold such values. Integers and decimals are looked at one by one."""
    for same in (kinds.is_integer, kinds.is_decimal):
        if same(mine) and same(there):
            return True
    return there in WIDER.get(mine, ())


def shown(kind: pa.DataType) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        text: str = from_arrow_type(kind).simpleString()
    except Exception:
        return str(kind)
    return text


@dataclass(frozen=True)
class LakeCheck:
    """A check of the records of a batch. `tables` are those that exist, by topic."""

    tables: Mapping[str, pa.Schema]
    pk_mode: str
    pk_fields: tuple[str, ...]
    deletes: bool  # records without a value delete rows
    evolves: bool
    broken: Mapping[str, Broken] = field(default_factory=dict)  # by topic: records that break a constraint

    @classmethod
    def of(
        cls, tables: Mapping[str, pa.Schema], settings: Settings, broken: Mapping[str, Broken] | None = None
    ) -> LakeCheck:
        deletes = settings.text("insert.mode") == "upsert" and settings.flag("delete.enabled")
        keys = tuple(settings.entries("pk.fields"))
        evolves = settings.flag("auto.evolve")
        return cls(tables, settings.text("pk.mode"), keys, deletes, evolves, broken or {})

    def __call__(self, records: pa.Table) -> Misfits:
        found: Misfits = {}
        has_value = records.column("value").is_valid()
        masks = ((has_value, True), (pc.invert(has_value), False)) if self.deletes else ((has_value, True),)
        for mask, has_values in masks:
            rows = places_of(mask)
            if rows:
                some = records if len(rows) == records.num_rows else records.take(pa.array(rows))
                own = self._of_rows(some, has_values=has_values)
                add(found, {rows[place]: text for place, text in own.items()})
        add(found, self._broken(records))
        return found

    def _broken(self, records: pa.Table) -> Misfits:
        known = self.broken.get(records.column("topic")[0].as_py()) if records.num_rows else None
        if not known:
            return {}
        places = zip(*(records.column(each).to_pylist() for each in ("partition", "offset")), strict=True)
        return {row: known[place] for row, place in enumerate(places) if place in known}

    def _of_rows(self, records: pa.Table, *, has_values: bool) -> Misfits:
        count = records.num_rows
        key, value = (records.column(side).combine_chunks() for side in ("key", "value"))
        columns, found = self._keys(key, value)
        if len(found) == count:
            return found
        if has_values:
            for name, column in fields_of(value).items():
                columns.setdefault(name, column)
        clash = names_by_case(columns)
        if clash:
            return {**dict.fromkeys(range(count), clash), **found}
        there = self.tables.get(records.column("topic")[0].as_py())
        if there is None:
            return found
        rules = Rules(takes, shown, missing="" if self.evolves else LACKS)
        if not has_values:  # of a row that goes only the key counts
            known = {name.lower() for name in columns}
            there = pa.schema([each for each in there if each.name.lower() in known])
        add(found, misfits_of_columns(columns, there, rules, count))
        return found

    def _keys(self, key: Any, value: Any) -> tuple[dict[str, Any], Misfits]:
        """The key columns, and the rows without a key."""
        if self.pk_mode == "none":
            return {}, {}
        side, data = ("key", key) if self.pk_mode == "record_key" else ("value", value)
        found = dict.fromkeys(places_of(data.is_null()), NO_KEY) if side == "key" else {}
        if len(found) == len(data):
            return {}, found
        fields, text = fields_of(data), ""
        missing = [each for each in self.pk_fields if each not in fields]
        if not kinds.is_struct(data.type):
            if side == "key" and len(self.pk_fields) == 1:
                return {self.pk_fields[0]: data}, found
            text = f"the record's {side} is a {shown(data.type)}, not a struct: pk.mode={self.pk_mode} needs"
            text += " pk.fields with one name for it" if side == "key" else " a value with fields"
        elif missing:
            text = f"pk.fields names {', '.join(missing)}: the record's {side} has {', '.join(fields)}"
        if text:
            return {}, {**dict.fromkeys(range(len(data)), text), **found}
        return {name: fields[name] for name in self.pk_fields or fields}, found


def fields_of(data: Any) -> dict[str, Any]:
    """The fields of a struct; another value is the column `value`."""
    if not kinds.is_struct(data.type) or not data.type.num_fields:
        return {"value": data}
    names = [data.type.field(index).name for index in range(data.type.num_fields)]
    return dict(zip(names, data.flatten(), strict=True))

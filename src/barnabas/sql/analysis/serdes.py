"""Formats in a plan: named while it is built, bound to code before it runs.

Rows in a plan: the **key** is a tuple with the value of each key column, in their order, or None for a
record without a key; in windows it is a `Windowed` with that tuple. The **value** is a dict by the names of
the value columns, or None (a tombstone of a table). Python types are those of `types/sql_types.py`.

A `RowSerde` names a format and the columns that it has to write. `bind(plan, make)` replaces each one by what
`make` gives for it: a serde (`plans/serdes.py`) that turns such keys and values into bytes and back. Values
inside of a query (stores, repartition topics) need no format: they go as `ROW_BYTES`.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from barnabas.plans.nodes import Node
from barnabas.plans.plan import Plan
from barnabas.plans.serdes import FromBytes, PlainSerde, Serde, ToBytes
from barnabas.plans.windows import Windowed
from barnabas.sql.metastore.schemas import Column, Format


@dataclass(frozen=True)
class RowSerde:
    """The format of keys or of values, by name. It has no code until its plan is bound."""

    row_format: Format
    columns: tuple[Column, ...]
    is_key: bool

    @property
    def format(self) -> str:
        return f"sql {self.row_format.name}"

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        raise TypeError(f"the plan is not bound: {self.format} has no code yet")

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        raise TypeError(f"the plan is not bound: {self.format} has no code yet")


MakeSerde = Callable[[RowSerde], Serde]


def bind(plan: Plan, make: MakeSerde) -> Plan:
    """The plan with code for its formats."""
    made: dict[RowSerde, Serde] = {}

    def serde_for(named: RowSerde) -> Serde:
        if named not in made:
            made[named] = make(named)
        return made[named]

    nodes = tuple(_bound(node, serde_for) for node in plan.nodes)
    stores = {name: _bound(spec, serde_for) for name, spec in plan.stores.items()}
    return replace(plan, nodes=nodes, stores=stores)


def _bound(value: Any, make: MakeSerde) -> Any:
    """The value with its serdes replaced, those inside of other serdes too."""
    if value is None or isinstance(value, str | int | tuple | PlainSerde):
        return value
    if isinstance(value, RowSerde):
        return make(value)
    is_owner = isinstance(value, Serde | Node) or type(value).__name__ == "StoreSpec"
    if not is_owner or not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes = {}
    for field in dataclasses.fields(value):
        before = getattr(value, field.name)
        after = _bound(before, make)
        if after is not before:
            changes[field.name] = after
    return replace(value, **changes) if changes else value


# ------------------------------------------------------------------------------------------- inner bytes
# JSON, with objects of one member for what JSON has not: {"$d": "1.50"}. A text that begins with "$" as the
# only member of an object is written as a list of pairs, so nothing is mistaken.


def to_row_bytes(value: Any) -> bytes:
    return orjson.dumps(plain_value(value))


def plain_value(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$f": str(value)}
    if kind is dict:
        if all(type(name) is str and not name.startswith("$") for name in value):
            return {name: plain_value(each) for name, each in value.items()}
        return {"$m": [[plain_value(name), plain_value(each)] for name, each in value.items()]}
    if kind is list:
        return [plain_value(each) for each in value]
    if kind is Windowed:
        return {"$w": [plain_value(each) for each in value]}
    if kind is tuple:
        return {"$u": [plain_value(each) for each in value]}
    if kind is decimal.Decimal:
        return {"$n": str(value)}
    if kind is bytes:
        return {"$b": base64.b64encode(value).decode()}
    if kind is dt.datetime:
        return {"$s": value.isoformat()}
    if kind is dt.date:
        return {"$d": value.isoformat()}
    if kind is dt.time:
        return {"$t": value.isoformat()}
    raise TypeError(f"a {kind.__name__} is no value of SQL")


_TAGGED: Mapping[str, Callable[[Any], Any]] = {
    "$f": float,
    "$m": lambda pairs: {_rich(name): _rich(each) for name, each in pairs},
    "$u": lambda items: tuple(_rich(each) for each in items),
    "$w": lambda parts: Windowed(*(_rich(each) for each in parts)),
    "$n": decimal.Decimal,
    "$b": base64.b64decode,
    "$s": dt.datetime.fromisoformat,
    "$d": dt.date.fromisoformat,
    "$t": dt.time.fromisoformat,
}


def _rich(value: Any) -> Any:
    if type(value) is dict:
        if len(value) == 1:
            ((name, inner),) = value.items()
            if name[:1] == "$":
                return _TAGGED[name](inner)
        return {name: _rich(each) for name, each in value.items()}
    if type(value) is list:
        return [_rich(each) for each in value]
    return value


def of_row_bytes(data: bytes) -> Any:
    value = orjson.loads(data)
    return _rich(value) if b'"$' in data else value


_COUNT = struct.Struct(">q")
ROW_BYTES = PlainSerde("sql row", to_row_bytes, of_row_bytes)


def _to_count_bytes(count: int) -> bytes:
    return _COUNT.pack(count)  # `_COUNT.pack` itself cannot be pickled


def _of_count_bytes(data: bytes) -> int:
    if data[:1] == b"[":  # the list of one state, as earlier versions kept it: no count is so large
        return int(of_row_bytes(data)[0])
    return _COUNT.unpack(data)[0]  # type: ignore[no-any-return]


COUNT_BYTES = PlainSerde("int64", _to_count_bytes, _of_count_bytes)  # the state of COUNT(*) alone

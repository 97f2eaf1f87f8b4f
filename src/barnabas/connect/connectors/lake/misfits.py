"""Values that a table's columns cannot hold, found over Arrow columns.

In: a column of records, the type of the table's column, the rules of its format. Out: the rows that do not
fit, each with the reason and the path of the field. Runs on executors. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

VALUE_CHARS_MAX = 100
Misfits = dict[int, str]  # the reason of each row that does not fit


@dataclass(frozen=True)
class Rules:
    """The values that tables of a format take. Functions are those of a module: they are pickled."""

    takes: Callable[[pa.DataType, pa.DataType], bool]  # whether values of a type may fit into another
    shown: Callable[[pa.DataType], str]
    widens: Callable[[pa.DataType, pa.DataType], bool] | None = None  # whether the table's type is changed
    missing: str = ""  # why a field cannot be written that the table lacks; empty: it is added or left out
    any_case: bool = True


def misfits_of_columns(columns: Mapping[str, Any], there: pa.Schema, rules: Rules, count: int) -> Misfits:
    """Rows that do not fit a table."""
    if not columns or not count:
        return {}
    arrays = [
        each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns.values()
    ]
    whole = pa.StructArray.from_arrays(arrays, names=list(columns))
    return misfits(whole, pa.struct(list(there)), "", rules)


def misfits(column: Any, there: pa.DataType, path: str, rules: Rules) -> Misfits:
    mine = column.type
    if kinds.is_struct(there) and kinds.is_struct(mine):
        return of_struct(column, there, path, rules)
    if is_list(there) and is_list(mine):
        if same_items(there, mine):
            return {}
        return of_items(column, column.flatten(), there.value_type, f"{path}[]", rules)
    if kinds.is_map(there) and kinds.is_map(mine):
        if mine.equals(there):
            return {}
        pairs = column.drop_null()
        places = column.is_valid().to_pylist()
        rows = [row for row, valid in enumerate(places) if valid]
        found: Misfits = {}
        for items, kind in ((pairs.keys, there.key_type), (pairs.items, there.item_type)):
            lists = pa.ListArray.from_arrays(pairs.offsets, items)
            own = of_items(lists, lists.flatten(), kind, f"{path}{{}}", rules)
            add(found, {rows[row]: text for row, text in own.items()})
        return found
    if mine == there or (rules.widens is not None and rules.widens(mine, there)):
        return {}
    if not rules.takes(mine, there):
        text = (
            f"{path} is {rules.shown(there)} in the table, and records bring {rules.shown(mine)}: change"
            " records with the transform Cast, or write another table"
        )
        return dict.fromkeys(places_of(column.is_valid()), text)
    return {
        row: f"{path} is {rules.shown(there)} in the table, which cannot hold"
        f" {str(column[row].as_py())[:VALUE_CHARS_MAX]}"
        for row in outside(column, there)
    }


def of_struct(column: Any, there: Any, path: str, rules: Rules) -> Misfits:
    found: Misfits = {}
    mine, parts = column.type, column.flatten()
    places = {named(mine.field(index).name, rules): index for index in range(mine.num_fields)}
    for index in range(there.num_fields):
        field = there.field(index)
        at = f"{path}.{field.name}" if path else field.name
        place = places.pop(named(field.name, rules), None)
        if not field.nullable:
            empty = column.is_valid() if place is None else pc.and_(column.is_valid(), parts[place].is_null())
            text = f"{at} is required in the table, and null or missing in the record"
            add(found, dict.fromkeys(places_of(empty), text))
        if place is not None:
            add(found, misfits(parts[place], field.type, at, rules))
    for index in places.values() if rules.missing else ():
        at = f"{path}.{mine.field(index).name}" if path else mine.field(index).name
        add(found, dict.fromkeys(places_of(parts[index].is_valid()), rules.missing.format(at)))
    return found


def of_items(lists: Any, items: Any, there: pa.DataType, path: str, rules: Rules) -> Misfits:
    """The rows of a list, by the rows of its items."""
    found = misfits(items, there, path, rules)
    if not found:
        return {}
    parents = pc.list_parent_indices(lists)
    made: Misfits = {}
    for item, text in sorted(found.items()):
        made.setdefault(parents[item].as_py(), text)
    return made


def outside(column: Any, there: pa.DataType) -> list[int]:
    """Rows whose values the type cannot hold."""
    try:
        column.cast(there)
    except pa.ArrowException:
        count = len(column)
        if count == 1:
            return [0] if column.null_count == 0 else []
        middle = count // 2
        rest = outside(column.slice(middle), there)
        return outside(column.slice(0, middle), there) + [middle + row for row in rest]
    return []


def places_of(mask: Any) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found


def add(found: Misfits, more: Misfits) -> None:
    for row, text in more.items():
        found.setdefault(row, text)


def named(name: str, rules: Rules) -> str:
    return name.lower() if rules.any_case else name


def is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind))


def same_items(one: Any, other: Any) -> bool:
    return bool(one.value_type == other.value_type and not kinds.is_nested(one.value_type))

"""Columns and rows: the values of many records, as Arrow keeps them or as Python objects.

A column is made in one of the two forms; the other one is made when a step asks for it. Does not know: steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans.windows import Windowed
from barnabas.streams.columns.origins import Origins

Numbers = Any  # a numpy array of int64
_PLAIN = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}


class NotColumnar(Exception):
    """A batch or a plan that columns cannot take: the message says why. The interpreter takes it."""


class Column:
    """The values of a batch. `array` raises NotColumnar where they have no common plain type. Rows that are
    taken out of a column are copied when a step asks for them, if one does."""

    __slots__ = ("_array", "_base", "_items", "_places")

    def __init__(self, array: pa.Array | None = None, items: list[Any] | None = None) -> None:
        self._array, self._items = array, items
        self._base: Column | None = None
        self._places: Numbers = None

    def __len__(self) -> int:
        if self._base is not None:
            return len(self._places)
        return len(self._array if self._items is None else self._items)  # type: ignore[arg-type]

    def _copy_rows(self) -> None:
        """Take the rows out of the column that this one is a part of."""
        base, places = self._base, self._places
        if base is None:
            return
        if base.is_array:
            self._array = base.array.take(pa.array(places))
        else:
            items = base.items
            self._items = [items[place] for place in places.tolist()]
        self._base = self._places = None

    @property
    def is_array(self) -> bool:
        return self._array is not None if self._base is None else self._base.is_array

    @property
    def array(self) -> pa.Array:
        self._copy_rows()
        if self._array is None:
            self._array = plain_array(self._items or [])
        return self._array

    @property
    def operand(self) -> Any:
        """The input of Arrow's functions: an array, or the scalar of a constant."""
        return self.array

    @property
    def items(self) -> list[Any]:
        self._copy_rows()
        if self._items is None:
            assert self._array is not None
            self._items = self._array.to_pylist()
        return self._items

    @property
    def is_null(self) -> Any:
        """A mask of the null values, as booleans."""
        self._copy_rows()
        if self._array is not None:
            if not self._array.null_count:
                return np.zeros(len(self._array), np.bool_)
            return self._array.is_null().to_numpy(zero_copy_only=False)
        return np.fromiter((each is None for each in self.items), np.bool_, len(self.items))

    @property
    def plain_type(self) -> pa.DataType | None:
        """The type of the array, None where the values have no common one."""
        try:
            return self.array.type
        except NotColumnar:
            return None

    def take(self, places: Numbers) -> Column:
        found = Column()
        if self._base is not None:
            found._base, found._places = self._base, self._places[places]
        else:
            found._base, found._places = self, places
        return found


class Constant(Column):
    """One value for all records."""

    __slots__ = ("value",)

    def __init__(self, value: Any, count: int) -> None:
        super().__init__(items=[value] * count)
        self.value = value

    def take(self, places: Numbers) -> Column:
        return Constant(self.value, len(places))

    @property
    def operand(self) -> Any:
        if type(self.value) not in _PLAIN:
            raise NotColumnar(f"{type(self.value).__name__} is no plain type")
        return pa.scalar(self.value, _PLAIN[type(self.value)])


class Fields(Column):
    """Rows of several columns: dicts by `names`, or tuples. `nulls` says which rows are null themselves."""

    __slots__ = ("columns", "count", "is_tuple", "names", "nulls")

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[Column],
        count: int,
        nulls: Numbers | None = None,
        *,
        is_tuple: bool = False,
    ) -> None:
        super().__init__()
        self.names, self.columns, self.count = tuple(names), list(columns), count
        self.nulls = None if nulls is None or not nulls.any() else nulls
        self.is_tuple = is_tuple

    def __len__(self) -> int:
        return self.count

    @property
    def is_array(self) -> bool:
        return False

    @property
    def array(self) -> pa.Array:
        raise NotColumnar("rows of several columns")

    @property
    def items(self) -> list[Any]:
        if self._items is None:
            names = self.names
            given = zip(*(each.items for each in self.columns), strict=True) if self.columns else None
            if given is None:
                found: list[Any] = [() if self.is_tuple else {} for _ in range(self.count)]
            else:
                found = list(given) if self.is_tuple else [dict(zip(names, some)) for some in given]  # noqa: B905
            if self.nulls is not None:
                for place in np.flatnonzero(self.nulls).tolist():
                    found[place] = None
            self._items = found
        return self._items

    @property
    def is_null(self) -> Any:
        return np.zeros(self.count, np.bool_) if self.nulls is None else self.nulls

    def take(self, places: Numbers) -> Fields:
        nulls = None if self.nulls is None else self.nulls[places]
        columns = [each.take(places) for each in self.columns]
        return Fields(self.names, columns, len(places), nulls, is_tuple=self.is_tuple)

    def field(self, name: str) -> Column | None:
        """The column of a name; null where the row is."""
        return self.columns[self.names.index(name)] if name in self.names else None

    def has_shape_of(self, other: Column) -> bool:
        return isinstance(other, Fields) and other.names == self.names and other.is_tuple == self.is_tuple


def plain_array(items: list[Any]) -> pa.Array:
    """Values of one plain type as an array. A mixture would come back as other values, so it is refused."""
    kinds = set(map(type, items)) - {type(None)}
    if not kinds:
        return pa.nulls(len(items))
    kind = min(kinds, key=lambda each: each.__name__)
    if len(kinds) > 1 or kind not in _PLAIN:
        raise NotColumnar(f"values of {', '.join(sorted(each.__name__ for each in kinds))}")
    try:
        return pa.array(items, _PLAIN[kind])
    except (pa.ArrowInvalid, OverflowError) as error:
        raise NotColumnar(str(error)) from error


@dataclass(frozen=True, slots=True)
class Rows:
    """Records between two steps. `times` are milliseconds, `order` counts the records of the batch as the
    interpreter takes them. Keys of windows are the plain keys with `starts` beside them."""

    keys: Column
    values: Column
    times: Numbers
    order: Numbers
    headers: pa.Array | None = None
    starts: Numbers | None = None
    window_ms: int = 0
    right: Column | None = None  # the other side, within a joiner
    origins: Origins | None = None
    old: Column | None = None  # of a table whose old values a step below needs: those before the batch

    def __len__(self) -> int:
        return len(self.times)

    def take(self, places: Numbers) -> Rows:
        if len(places) == len(self.times) and (np.diff(places) == 1).all():
            return self
        return Rows(
            self.keys.take(places),
            self.values.take(places),
            self.times[places],
            self.order[places],
            None if self.headers is None else self.headers.take(pa.array(places)),
            None if self.starts is None else self.starts[places],
            self.window_ms,
            origins=self.origins,
            old=None if self.old is None else self.old.take(places),
        )

    @property
    def key_items(self) -> list[Any]:
        """Keys as Python objects, those of windows with their window."""
        if self.starts is None:
            return self.keys.items
        size = self.window_ms
        return [
            Windowed(each, start, start + size)
            for each, start in zip(self.keys.items, self.starts.tolist(), strict=True)
        ]

    def where(self, mask: Any) -> Rows:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_values(self, values: Column) -> Rows:
        return replace(self, values=values)

    def with_keys(self, keys: Column) -> Rows:
        return replace(self, keys=keys, starts=None, window_ms=0)


def row_at(rows: Rows, place: int) -> Any:
    """The value of one record, as the interpreter has it."""
    return rows.values.take(np.array([place])).items[0]

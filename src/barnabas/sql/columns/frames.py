"""Rows of a batch as expressions of SQL see them, and which rows they cannot be sure about.

A form over columns computes all rows. Where a row is not certain (a division by zero, a text that is no plain
number, a function that raised) it *doubts* the row: the interpreter computes that row again and its result
counts, with its error. Does not know: which forms there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans.evaluation import Evaluate as EvaluateRow
from barnabas.streams.columns.column import Column, Constant, Rows
from barnabas.streams.columns.expressions import cursor_of, scopes_of

Evaluate = Callable[["Frame"], Column]


class Frame:
    """The rows of one evaluation."""

    __slots__ = ("doubts", "rows")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.doubts: Any = None  # which rows are not certain; None: all are

    def __len__(self) -> int:
        return len(self.rows)

    def doubt(self, mask: Any) -> None:
        """These rows are not certain: booleans of numpy, or of Arrow, where null is false."""
        if isinstance(mask, pa.Array):
            mask = mask.fill_null(False).to_numpy(zero_copy_only=False)
        elif isinstance(mask, pa.Scalar):
            mask = np.full(len(self), bool(mask.as_py()))
        if mask.any():
            self.doubts = mask if self.doubts is None else self.doubts | mask

    def doubt_places(self, places: Sequence[int]) -> None:
        mask = np.zeros(len(self), np.bool_)
        mask[list(places)] = True
        self.doubt(mask)

    def loop(self, code: Callable[..., Any], columns: Sequence[Column]) -> Column:
        """A function of Python over values. Rows where it raises are doubted."""
        if columns and all(isinstance(each, Constant) for each in columns):
            columns = [Column(items=each.items) for each in columns]
        given = [each.items for each in columns]
        try:
            if given:
                return Column(items=list(map(code, *given)))
            return Column(items=[code() for _ in range(len(self))])
        except Exception:
            pass
        found: list[Any] = []
        wrong: list[int] = []
        arguments = zip(*given, strict=True) if given else iter([()] * len(self))
        for place, some in enumerate(arguments):
            try:
                found.append(code(*some))
            except Exception:
                found.append(None)
                wrong.append(place)
        self.doubt_places(wrong)
        return Column(items=found)

    def by_rows(self, evaluate: EvaluateRow) -> Column:
        """An expression of the interpreter over rows. Rows where it raises are doubted."""
        found: list[Any] = []
        wrong: list[int] = []
        for place, scope in enumerate(scopes(self.rows)):
            try:
                found.append(evaluate(scope))
            except Exception:
                found.append(None)
                wrong.append(place)
        if wrong:
            self.doubt_places(wrong)
        return Column(items=found)


def scopes(rows: Rows, places: Any = None) -> Iterator[tuple[Any, ...]]:
    """Scopes of the interpreter's expressions for each row, or for those at some places. The context is that
    of the row at hand."""
    cursor = cursor_of(rows)
    numbers = range(len(rows)) if places is None else places.tolist()
    some = rows if places is None else rows.take(places)
    for cursor.row, scope in zip(numbers, scopes_of(some), strict=True):
        yield (*scope, cursor)


def certain(frame: Frame, column: Column, evaluate: EvaluateRow) -> Column:
    """The column with the interpreter's result in the rows that are doubted. What it raises goes through."""
    if frame.doubts is None:
        return column
    places = np.flatnonzero(frame.doubts)
    items = list(column.items)
    for place, scope in zip(places.tolist(), scopes(frame.rows, places), strict=True):
        items[place] = evaluate(scope)
    return Column(items=items)

"""ROUND, TRUNC, SIGN, SQRT and NULLIF over columns.

A double that lies so near to the middle between two results that its decimal digits decide is doubted. Does
not know: trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.arithmetic import as_real, operands_of
from barnabas.sql.columns.comparisons import comparison_form
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.function_forms import Form, forms
from barnabas.sql.columns.values import ARROW, full, masked, operand_of
from barnabas.sql.types.sql_types import BIGINT, DOUBLE, INTEGER, WHOLE, SqlType
from barnabas.streams.columns.column import Column, Constant

EXACT_MAX = float(1 << 52)  # doubles below it have parts behind the point
SCALED_MAX = float(1 << 36)  # a product below it is wrong by less than NEAR
PLACES_MAX = 15  # powers of ten up to there, and quotients of whole numbers by them, are exact
NEAR = 1e-4

Numbers = Any  # a numpy array of doubles


def numbers_of(column: Column, kind: SqlType, frame: Frame) -> tuple[Numbers, Any] | None:
    """Doubles without nulls, and where the nulls were."""
    operand = operand_of(column, kind)
    if operand is None:
        return None
    array = full(as_real(operand), len(frame))
    return array.fill_null(0.0).to_numpy(zero_copy_only=False), array.is_null().to_numpy(zero_copy_only=False)


def to_whole(cut: Callable[[Numbers], Numbers]) -> Callable[..., Form | None]:
    """ROUND and TRUNC without places: a double becomes a BIGINT."""

    def make(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
        if kinds[0] in WHOLE:
            return lambda frame, columns: columns[0]
        if kinds == (DOUBLE,):
            return lambda frame, columns: _whole(frame, columns[0], cut)
        if kinds == (DOUBLE, INTEGER) and cut is half_up:
            return _rounded
        return None

    return make


def _whole(frame: Frame, column: Column, cut: Callable[[Numbers], Numbers]) -> Any:
    found = numbers_of(column, DOUBLE, frame)
    if found is None:
        return None
    numbers, nulls = found
    unsure = ~(np.abs(numbers) < EXACT_MAX)
    frame.doubt(unsure)
    return masked(pa.array(cut(np.where(unsure, 0.0, numbers)).astype(np.int64)), nulls)


def half_up(numbers: Numbers) -> Numbers:
    """The next whole number, the upper one from the middle on. The difference is exact, a sum is not."""
    below = np.floor(numbers)
    return below + (numbers - below >= 0.5)


def _rounded(frame: Frame, columns: Sequence[Column]) -> Any:
    """To places behind the point."""
    places = columns[1].value if isinstance(columns[1], Constant) else None
    if places is None or not 0 <= places <= PLACES_MAX:
        return None
    found = numbers_of(columns[0], DOUBLE, frame)
    if found is None:
        return None
    numbers, nulls = found
    power = 10.0**places
    with np.errstate(all="ignore"):
        scaled = numbers * power
        below = np.floor(scaled)
        rest = scaled - below
        unsure = ~(np.abs(scaled) < SCALED_MAX) | (np.abs(rest - 0.5) < NEAR)
        whole = np.where(unsure, 0.0, below + (rest > 0.5))
    frame.doubt(unsure | (np.signbit(numbers) & (whole == 0)))  # a zero may have a sign
    return masked(pa.array(whole / power), nulls)


forms("ROUND")(to_whole(half_up))
forms("TRUNC")(to_whole(np.trunc))


@forms("SIGN")
def sign(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds[0] not in (INTEGER, BIGINT, DOUBLE):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = operand_of(columns[0], kinds[0])
        if found is None:
            return None
        array = full(found, len(frame))
        above, below = (compare(array, 0).cast(pa.int64()) for compare in (pc.greater, pc.less))
        return pc.subtract(above, below)

    return form


@forms("SQRT")
def square_root(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    """Below zero there is no number, as in Java."""
    if kinds[0] not in (INTEGER, BIGINT, DOUBLE):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        found = numbers_of(columns[0], kinds[0], frame)
        if found is None:
            return None
        with np.errstate(invalid="ignore"):
            roots = np.where(found[0] < 0, np.nan, np.sqrt(found[0]))  # numpy's NaN has a sign there
        return masked(pa.array(roots), found[1])

    return form


@forms("NULLIF")
def null_if(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kind not in ARROW or set(kinds) != {kind}:
        return None
    compare = comparison_form("=", kinds)

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        equal = None if operands is None or compare is None else compare(frame, columns)
        if operands is None or equal is None:
            return None
        return pc.if_else(equal, pa.scalar(None, ARROW[kind]), full(operands[0], len(frame)))

    return form

"""Arithmetic over columns: INTEGER and BIGINT wrap, DOUBLE is IEEE's; decimals have no form.

Does not know: trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.values import full, masked, operand_of
from barnabas.sql.types.sql_types import BIGINT, DOUBLE, INTEGER, LONG_MIN, STRING, WHOLE, SqlType
from barnabas.streams.columns.column import Column

_LONG, _REAL = pa.int64(), pa.float64()
_COMPUTE: dict[str, Any] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def operands_of(columns: Sequence[Column], kinds: Sequence[SqlType]) -> list[Any] | None:
    """Arrays and scalars of all columns; None where one has no plain values."""
    found = []
    for column, kind in zip(columns, kinds, strict=True):
        operand = operand_of(column, kind)
        if operand is None:
            return None
        found.append(operand)
    return found


def wrapped(array: pa.Array, kind: SqlType) -> pa.Array:
    """Numbers that were computed with 64 bits, as the type has them."""
    if kind != INTEGER:
        return array
    return pc.cast(array, pa.int32(), safe=False).cast(_LONG)


def as_real(operand: Any) -> Any:
    return operand if operand.type == _REAL else pc.cast(operand, _REAL, safe=False)


def arithmetic_form(name: str, kinds: tuple[SqlType, ...], kind: SqlType) -> Any:
    if name in ("+", "||") and kind == STRING:
        return _joined
    if kind in WHOLE and set(kinds) <= WHOLE:
        if name in _COMPUTE:
            return _of_whole(name, kinds, kind)
        return _divided(name == "%", kinds, kind)
    if kind == DOUBLE and set(kinds) <= {*WHOLE, DOUBLE}:
        return _of_real(name, kinds)
    return None


def _joined(frame: Frame, columns: Sequence[Column]) -> Any:
    operands = operands_of(columns, (STRING, STRING))
    return None if operands is None else pc.binary_join_element_wise(*operands, "")


def _of_whole(name: str, kinds: tuple[SqlType, ...], kind: SqlType) -> Any:
    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        return None if operands is None else wrapped(full(_COMPUTE[name](*operands), len(frame)), kind)

    return form


def _divided(is_rest: bool, kinds: tuple[SqlType, ...], kind: SqlType) -> Any:
    """Cut towards zero. Division by zero, and by -1, which may overflow, are left to the interpreter."""

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        if operands is None:
            return None
        one, two = (full(each, len(frame)) for each in operands)
        unsure = pc.or_(pc.equal(two, 0), pc.and_(pc.equal(two, -1), pc.equal(one, LONG_MIN)))
        frame.doubt(unsure)
        two = pc.if_else(unsure, pa.scalar(1, _LONG), two)
        found = pc.divide(one, two)
        return wrapped(pc.subtract(one, pc.multiply(found, two)) if is_rest else found, kind)

    return form


def _of_real(name: str, kinds: tuple[SqlType, ...]) -> Any:
    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        if operands is None:
            return None
        one, two = (full(as_real(each), len(frame)) for each in operands)
        if name in _COMPUTE:
            return _COMPUTE[name](one, two)
        nulls = one.is_null().to_numpy(zero_copy_only=False) | two.is_null().to_numpy(zero_copy_only=False)
        a, b = (each.fill_null(1.0).to_numpy(zero_copy_only=False) for each in (one, two))
        with np.errstate(all="ignore"):
            found = np.fmod(a, b) if name == "%" else np.divide(a, b)
        return masked(pa.array(found), nulls)

    return form


def negation_form(kind: SqlType) -> Any:
    if kind not in (INTEGER, BIGINT, DOUBLE):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, (kind,))
        if operands is None:
            return None
        return wrapped(full(pc.negate(operands[0]), len(frame)), kind)

    return form

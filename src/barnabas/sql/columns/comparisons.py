"""Comparisons over columns, IN and LIKE: false where a side is null.

Does not know: trees beyond a pattern that is a literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.plans import expressions as e
from barnabas.sql.columns.arithmetic import as_real, operands_of
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.values import full, operand_of
from barnabas.sql.types.sql_types import BOOLEAN, BYTES, DOUBLE, NULL, STRING, WHOLE, SqlType
from barnabas.streams.columns.column import Column, Constant

EXACT_MAX = 1 << 53  # doubles hold whole numbers up to here
_COMPUTE: dict[str, Any] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def comparison_form(name: str, kinds: tuple[SqlType, ...]) -> Any:
    one, two = kinds
    if NULL in kinds:
        return lambda frame, columns: pa.scalar(False)
    if {one, two} <= {*WHOLE, DOUBLE}:
        return _of_numbers(name, kinds)
    if one != two or one not in (STRING, BYTES, BOOLEAN):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        return None if operands is None else holds(_COMPUTE[name](*operands), len(frame))

    return form


def holds(found: Any, count: int) -> pa.Array:
    return full(found, count).fill_null(False)


def _of_numbers(name: str, kinds: tuple[SqlType, ...]) -> Any:
    is_mixed = DOUBLE in kinds and kinds[0] != kinds[1]

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        if operands is None:
            return None
        if is_mixed:
            [whole] = [each for each, kind in zip(operands, kinds, strict=True) if kind != DOUBLE]
            frame.doubt(pc.or_(pc.greater(whole, EXACT_MAX), pc.less(whole, -EXACT_MAX)))
            operands = [as_real(each) for each in operands]
        return holds(_COMPUTE[name](*operands), len(frame))

    return form


def in_form(kinds: tuple[SqlType, ...]) -> Any:
    kind = kinds[0]
    if kind not in (STRING, BYTES, BOOLEAN, *WHOLE):
        return None
    if any(each != kind and not {each, kind} <= WHOLE and each != NULL for each in kinds[1:]):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operand = operand_of(columns[0], kind)
        if operand is None or not all(isinstance(each, Constant) for each in columns[1:]):
            return None
        options = [each.value for each in columns[1:] if isinstance(each, Constant)]
        given = pa.array([each for each in options if each is not None], operand.type)
        return holds(pc.is_in(full(operand, len(frame)), given), len(frame))

    return form


def like_form(arguments: Sequence[e.Expression], kinds: Sequence[SqlType]) -> Any:
    """Of patterns that are literals, without ESCAPE."""
    if len(arguments) != 2 or kinds[0] != STRING:
        return None
    pattern = arguments[1]
    if not isinstance(pattern, e.Literal_) or not isinstance(pattern.value, str):
        return None
    match = matcher(pattern.value)

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        text = operand_of(columns[0], STRING)
        return None if text is None else holds(match(text), len(frame))

    return form


def matcher(pattern: str) -> Any:
    plain = pattern.strip("%")
    if "%" not in plain and "_" not in plain:
        starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
        if not plain and pattern:
            return pc.is_valid
        if starts and ends:
            return lambda text: pc.equal(text, pattern)
        if starts:
            return lambda text: pc.starts_with(text, plain)
        return (
            (lambda text: pc.ends_with(text, plain)) if ends else lambda text: pc.match_substring(text, plain)
        )
    parts = [".*" if sign == "%" else "." if sign == "_" else re.escape(sign) for sign in pattern]
    regex = f"^(?s:{''.join(parts)})$"
    return lambda text: pc.match_substring_regex(text, regex)

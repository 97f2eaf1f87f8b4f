"""Scalar functions and operators over Arrow columns, for the types for which they agree with Python's.

A form gets operands (arrays, or scalars of constants) with their types and gives an array, or None where it
would compute something else. Others register theirs beside the function itself. Does not know: expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Form = Callable[[Sequence[Any]], Any]
_FORMS: dict[str, Form] = {}
_TEXT, _NUMBER, _REAL, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()


def register_form(name: str, form: Form) -> None:
    """Give a function its form over columns. Null arguments give null, unless the function takes nulls."""
    _FORMS[name.lower()] = form


def form_of(name: str) -> Form | None:
    return _FORMS.get(name.lower())


def all_of(kind: pa.DataType, operands: Sequence[Any]) -> bool:
    return all(each.type == kind for each in operands)


def is_ascii(text: Any) -> bool:
    return bool(pc.all(pc.string_is_ascii(text), min_count=0).as_py())


def _constant(operand: Any) -> Any:
    return operand.as_py() if isinstance(operand, pa.Scalar) else None


_NUMERIC: dict[str, Any] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_COMPARED: dict[str, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def binary_form(operator: str, operands: Sequence[Any]) -> Any:
    """An operator, or None where Python's result would be another one."""
    one, two = operands
    if one.type != two.type:
        return None
    if operator in _COMPARED:
        is_ordered = one.type in (_TEXT, _NUMBER, _REAL, pa.binary())
        return _COMPARED[operator](one, two) if is_ordered or one.type == _TRUTH else None
    if operator in _NUMERIC and one.type in (_NUMBER, _REAL):
        return _NUMERIC[operator](one, two)  # an overflow raises; the interpreter counts on
    if operator == "+" and one.type == _TEXT:
        return pc.binary_join_element_wise(one, two, "")
    if operator == "/" and one.type in (_NUMBER, _REAL):
        if pc.any(pc.equal(two, pa.scalar(0, two.type)), min_count=0).as_py():
            return None
        exact = 1 << 53
        if one.type == _NUMBER:
            for each in operands:
                ends = pc.min_max(each) if not isinstance(each, pa.Scalar) else None
                low, high = (
                    (each.as_py(),) * 2 if ends is None else (ends["min"].as_py(), ends["max"].as_py())
                )
                if low is not None and (low < -exact or high > exact):
                    return None
            return pc.divide(one.cast(_REAL), two.cast(_REAL))
        return pc.divide(one, two)
    if operator in ("and", "or") and one.type == _TRUTH:
        return pc.and_kleene(one, two) if operator == "and" else pc.or_kleene(one, two)
    return None


def unary_form(operator: str, operand: Any) -> Any:
    if operator == "is null":
        return pc.is_null(operand)
    if operator == "is not null":
        return pc.is_valid(operand)
    if operator == "not" and operand.type == _TRUTH:
        return pc.invert(operand)
    if operator == "-" and operand.type in (_NUMBER, _REAL):
        return pc.negate_checked(operand)
    return None


def _cased(function: Any) -> Form:
    def form(operands: Sequence[Any]) -> Any:
        [text] = operands
        return function(text) if text.type == _TEXT and is_ascii(text) else None

    return form


def _length(operands: Sequence[Any]) -> Any:
    [text] = operands
    return pc.utf8_length(text).cast(_NUMBER) if text.type == _TEXT else None


def _concat(operands: Sequence[Any]) -> Any:
    if not operands or not all_of(_TEXT, operands):
        return None
    return pc.binary_join_element_wise(*operands, "", null_handling="replace", null_replacement="")


def _split(operands: Sequence[Any]) -> Any:
    text, separator = operands
    if text.type != _TEXT or not _constant(separator) or isinstance(text, pa.Scalar):
        return None
    return pc.split_pattern(text, separator.as_py())


def _replace(operands: Sequence[Any]) -> Any:
    text, old, new = operands
    if not all_of(_TEXT, operands) or not _constant(old) or _constant(new) is None:
        return None
    return pc.replace_substring(text, old.as_py(), new.as_py())


def _like(operands: Sequence[Any]) -> Any:
    text, pattern = operands
    if not all_of(_TEXT, operands) or _constant(pattern) is None or "\\" in pattern.as_py():
        return None
    return pc.match_like(text, pattern.as_py())


def _contains(operands: Sequence[Any]) -> Any:
    text, part = operands
    if not all_of(_TEXT, operands) or _constant(part) is None:
        return None
    return pc.match_substring(text, part.as_py())


def _coalesce(operands: Sequence[Any]) -> Any:
    return pc.coalesce(*operands) if all_of(operands[0].type, operands) else None


def _abs(operands: Sequence[Any]) -> Any:
    return pc.abs_checked(operands[0]) if operands[0].type in (_NUMBER, _REAL) else None


for _name, _form in {
    "upper": _cased(pc.ascii_upper),
    "lower": _cased(pc.ascii_lower),
    "length": _length,
    "concat": _concat,
    "split": _split,
    "replace": _replace,
    "like": _like,
    "contains": _contains,
    "coalesce": _coalesce,
    "abs": _abs,
}.items():
    register_form(_name, _form)

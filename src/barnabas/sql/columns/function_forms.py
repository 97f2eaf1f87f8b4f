"""Functions over columns: the ones of texts, numbers and nulls that Arrow computes as SQL does.

`FORMS` has a maker for each: types in, a form or None out. Does not know: trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.arithmetic import operands_of
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.values import ARROW, full, masked, operand_of
from barnabas.sql.functions.strings import SPACES
from barnabas.sql.types.sql_types import BIGINT, DOUBLE, INTEGER, LONG_MIN, STRING, WHOLE, SqlType
from barnabas.streams.columns.column import Column, Constant

Form = Callable[[Frame, Sequence[Column]], Any]
Make = Callable[[tuple[SqlType, ...], SqlType], Form | None]
FORMS: dict[str, Make] = {}


def forms(name: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        FORMS[name] = make
        return make

    return register


def of_texts(compute: Callable[[Frame, pa.Array, list[Any]], Any], more: tuple[SqlType, ...] = ()) -> Make:
    """A function of a text and of constants; null where one is null."""

    def make(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
        if not kinds or kinds[0] != STRING or len(kinds) > 1 + len(more):
            return None

        def form(frame: Frame, columns: Sequence[Column]) -> Any:
            text = operand_of(columns[0], STRING)
            constants = [each.value for each in columns[1:] if isinstance(each, Constant)]
            if text is None or len(constants) + 1 < len(columns) or None in constants:
                return None
            return compute(frame, full(text, len(frame)), constants)

        return form

    return make


def is_ascii(texts: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(texts), min_count=0).as_py())


def cased(compute: Any) -> Make:
    return of_texts(lambda frame, text, more: compute(text) if is_ascii(text) else None)


def _length(frame: Frame, text: pa.Array, more: list[Any]) -> Any:
    return pc.utf8_length(text).cast(pa.int64()) if is_ascii(text) else None


def _substring(frame: Frame, text: pa.Array, more: list[Any]) -> Any:
    position, length = more[0], more[1] if len(more) > 1 else None
    if position < 0:
        return None
    start = max(0, position - 1)
    return pc.utf8_slice_codeunits(text, start, None if length is None else start + max(0, length))


def _replace(frame: Frame, text: pa.Array, more: list[Any]) -> Any:
    old, new = more if len(more) == 2 else ("", "")
    return pc.replace_substring(text, old, new) if old else None


def _split(frame: Frame, text: pa.Array, more: list[Any]) -> Any:
    return pc.split_pattern(text, more[0]) if more and more[0] else None


FORMS["UCASE"] = cased(pc.ascii_upper)
FORMS["LCASE"] = cased(pc.ascii_lower)
FORMS["TRIM"] = of_texts(lambda frame, text, more: pc.utf8_trim(text, SPACES))
FORMS["LEN"] = of_texts(_length)
FORMS["SUBSTRING"] = of_texts(_substring, (INTEGER, INTEGER))
FORMS["REPLACE"] = of_texts(_replace, (STRING, STRING))
FORMS["SPLIT"] = of_texts(_split, (STRING,))


@forms("CONCAT")
def concat(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    """Nulls are left out."""
    if not kinds or set(kinds) != {STRING}:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        if operands is None:
            return None
        return pc.binary_join_element_wise(*operands, "", null_handling="replace", null_replacement="")

    return form


def first_of(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kind not in ARROW or set(kinds) != {kind}:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operands = operands_of(columns, kinds)
        return None if operands is None else pc.coalesce(*operands)

    return form


FORMS["COALESCE"] = FORMS["IFNULL"] = first_of


@forms("AS_VALUE")
def as_value(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    return lambda frame, columns: columns[0]


@forms("ABS")
def absolute(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds[0] not in (INTEGER, BIGINT, DOUBLE):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operand = operand_of(columns[0], kinds[0])
        if operand is None:
            return None
        if kinds[0] != DOUBLE:
            frame.doubt(pc.equal(operand, LONG_MIN))
        return pc.abs(operand)

    return form


def whole(compute: Any) -> Make:
    """CEIL and FLOOR. A zero has no sign."""

    def make(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
        if kinds[0] in WHOLE:
            return lambda frame, columns: columns[0]
        if kinds[0] != DOUBLE:
            return None

        def form(frame: Frame, columns: Sequence[Column]) -> Any:
            operand = operand_of(columns[0], DOUBLE)
            if operand is None:
                return None
            array = full(operand, len(frame))
            found = compute(array.fill_null(0.0).to_numpy(zero_copy_only=False)) + 0.0
            return masked(pa.array(found), array.is_null().to_numpy(zero_copy_only=False))

        return form

    return make


FORMS["CEIL"] = whole(np.ceil)
FORMS["FLOOR"] = whole(np.floor)


def extreme(compute: Any) -> Make:
    """GREATEST and LEAST of whole numbers and of texts: nulls are left out."""

    def make(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
        if not (set(kinds) <= WHOLE or set(kinds) == {STRING}):
            return None

        def form(frame: Frame, columns: Sequence[Column]) -> Any:
            operands = operands_of(columns, kinds)
            return None if operands is None else compute(*operands, skip_nulls=True)

        return form

    return make


FORMS["GREATEST"] = extreme(pc.max_element_wise)
FORMS["LEAST"] = extreme(pc.min_element_wise)

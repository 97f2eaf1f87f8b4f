"""CONCAT_WS, INSTR, LPAD, RPAD and EXTRACTJSONFIELD over columns, where all but the text are constants.

Does not know: trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.arithmetic import operands_of
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.function_forms import Form, forms, is_ascii
from barnabas.sql.columns.values import full, operand_of
from barnabas.sql.functions.documents import PATH, extract
from barnabas.sql.functions.strings import PADDED_LENGTH_MAX
from barnabas.sql.types.sql_types import STRING, SqlType
from barnabas.streams.columns.column import Column, Constant


def constant(column: Column, kind: type) -> Any:
    """The value of a constant of this class; else None."""
    found = column.value if isinstance(column, Constant) else None
    return found if type(found) is kind else None


@forms("CONCAT_WS")
def concat_with(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    """Nulls are left out."""
    if set(kinds) != {STRING}:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        separator = constant(columns[0], str)
        operands = operands_of(columns[1:], kinds[1:])
        if separator is None or not operands:
            return None
        return pc.binary_join_element_wise(*operands, separator, null_handling="skip")

    return form


@forms("INSTR")
def position_in(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds != (STRING, STRING):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        text, part = operand_of(columns[0], STRING), constant(columns[1], str)
        if text is None or not part:
            return None
        texts = full(text, len(frame))
        if not is_ascii(texts):
            return None
        return pc.add(pc.find_substring(texts, part).cast(pa.int64()), 1).fill_null(0)

    return form


def padding(pad: Any) -> Callable[[tuple[SqlType, ...], SqlType], Form | None]:
    """LPAD and RPAD with one sign. Longer texts are cut."""

    def make(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
        if kinds[0] != STRING:
            return None

        def form(frame: Frame, columns: Sequence[Column]) -> Any:
            text, length, sign = (
                operand_of(columns[0], STRING),
                constant(columns[1], int),
                constant(columns[2], str),
            )
            if text is None or length is None or sign is None or len(sign) != 1:
                return None
            if not 0 <= length <= PADDED_LENGTH_MAX:
                return None
            return pc.utf8_slice_codeunits(pad(full(text, len(frame)), length, sign), 0, length)

        return form

    return make


forms("LPAD")(padding(pc.utf8_lpad))
forms("RPAD")(padding(pc.utf8_rpad))


@forms("EXTRACTJSONFIELD")
def extracted(kinds: tuple[SqlType, ...], kind: SqlType) -> Form | None:
    if kinds != (STRING, STRING):
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        path = constant(columns[1], str)
        steps = None if path is None else steps_of(path)
        return None if path is None or steps is None else frame.loop(extractor(path, steps), columns[:1])

    return form


def steps_of(path: str) -> list[str | int] | None:
    """Names and places of a path; None if it is wrong."""
    if not path.startswith("$"):
        return None
    found: list[str | int] = []
    place = 1
    while place < len(path):
        step = PATH.match(path, place)
        if step is None:
            return None
        place = step.end()
        found.append(step[1] or step[3] or "" if step[2] is None else int(step[2]))
    return found


def extractor(path: str, steps: list[str | int]) -> Callable[[str | None], str | None]:
    """Reads documents with a quick parser. It keeps no digits of numbers and refuses some documents, so
    that numbers with a point, objects, arrays and what it refuses are read again."""

    def quick(text: str | None) -> str | None:
        if text is None:
            return None
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            return extract(text, path)
        for step in steps:
            if type(step) is int:
                if type(found) is not list or step >= len(found):
                    return None
                found = found[step]
            else:
                if type(found) is not dict or step not in found:
                    return None
                found = found[step]
        kind = type(found)
        if kind is str:
            return found  # type: ignore[no-any-return]
        if kind is int:
            return str(found)
        if kind is bool:
            return "true" if found else "false"
        return "null" if found is None else extract(text, path)

    return quick

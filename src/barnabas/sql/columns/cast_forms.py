"""Casts over columns, between texts, numbers and booleans. Texts that are not plain numbers are doubted.

Does not know: trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.arithmetic import as_real, wrapped
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.values import full, masked, operand_of
from barnabas.sql.types.sql_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT_MAX,
    INT_MIN,
    INTEGER,
    STRING,
    WHOLE,
    SqlType,
)
from barnabas.streams.columns.column import Column

Convert = Callable[[Frame, pa.Array], pa.Array]
LONG_EDGE = float(1 << 62)  # beyond, and where a number is none, Java's rules count
PLAIN = {INTEGER: "^-?[0-9]{1,9}$", BIGINT: "^-?[0-9]{1,18}$", DOUBLE: r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"}


def cast_form(given: SqlType, wanted: SqlType) -> Any:
    convert = _converter(given, wanted)
    if convert is None:
        return None

    def form(frame: Frame, columns: Sequence[Column]) -> Any:
        operand = operand_of(columns[0], given)
        return None if operand is None else convert(frame, full(operand, len(frame)))

    return form


def _converter(given: SqlType, wanted: SqlType) -> Convert | None:
    if given in WHOLE and wanted in WHOLE:
        return lambda frame, array: wrapped(array, wanted)
    if given in WHOLE and wanted == DOUBLE:
        return lambda frame, array: as_real(array)
    if given == DOUBLE and wanted in WHOLE:
        return lambda frame, array: _cut(frame, array, wanted)
    if wanted == STRING and given in (INTEGER, BIGINT, BOOLEAN):
        return lambda frame, array: array.cast(pa.string())
    if given == STRING and wanted in PLAIN:
        return lambda frame, array: _of_text(frame, array, wanted)
    return None


def _cut(frame: Frame, array: pa.Array, wanted: SqlType) -> pa.Array:
    plain = array.fill_null(0.0).to_numpy(zero_copy_only=False)
    unsure = ~(np.abs(plain) < LONG_EDGE)
    frame.doubt(unsure)
    found = np.trunc(np.where(unsure, 0.0, plain)).astype(np.int64)
    if wanted == INTEGER:
        found = np.clip(found, INT_MIN, INT_MAX)
    return masked(pa.array(found), array.is_null().to_numpy(zero_copy_only=False))


def _of_text(frame: Frame, texts: pa.Array, wanted: SqlType) -> pa.Array:
    is_plain = pc.match_substring_regex(texts, PLAIN[wanted])
    frame.doubt(pc.invert(is_plain))
    sure = pc.if_else(is_plain, texts, pa.scalar(None, pa.string()))
    return sure.cast(pa.float64() if wanted == DOUBLE else pa.int64())

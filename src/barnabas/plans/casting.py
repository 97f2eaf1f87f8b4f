"""Casts of values between types by name.

In: a type's name. Out: a function of a value that is not null. A text that is no number raises ValueError
with the text. Does not know: SQL's declarations of types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TRUE, _FALSE = {"true", "yes", "t", "y"}, {"false", "no", "f", "n"}


def _to_int(value: Any) -> int:
    return int(Decimal(value.strip())) if isinstance(value, str) else int(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode() if isinstance(value, bytes) else str(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ValueError(f"{value!r} is no boolean")
    return bool(value)


_CASTS: dict[str, Callable[[Any], Any]] = {
    "boolean": _to_bool,
    "int": _to_int,
    "integer": _to_int,
    "bigint": _to_int,
    "double": float,
    "string": _to_text,
    "varchar": _to_text,
    "bytes": lambda value: value if isinstance(value, bytes) else str(value).encode(),
}


def register_cast(type_name: str, convert: Callable[[Any], Any]) -> None:
    """Make a type known, or replace its cast."""
    _CASTS[type_name.lower()] = convert


def cast_to(type_name: str) -> Callable[[Any], Any]:
    wanted = type_name.lower().strip()
    if found := _DECIMAL.fullmatch(wanted):
        unit = Decimal(1).scaleb(-int(found[2]))
        return lambda value: Decimal(str(value)).quantize(unit, ROUND_HALF_UP)
    if wanted not in _CASTS:
        raise ValueError(
            f"cannot cast to {type_name!r}; known types: {', '.join(sorted(_CASTS))}, decimal(p,s)"
        )
    return _CASTS[wanted]

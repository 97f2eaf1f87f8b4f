"""Whether a field's default is a value of its type, by the rules of Avro's Java library.

In: a type and a JSON value. Out: yes or no. Does not know: places, names.
"""

from __future__ import annotations

import re

from barnabas.schemas.avro.types import Absent, Array, Enum, Fixed, Json, Map, Primitive, Record, Type, Union
from barnabas.schemas.model import InvalidSchema

DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?")
INT_RANGES = {"int": 2**31, "long": 2**63}


def number_of(text: str, place: str) -> float:
    """The number of a float's or double's default that is written as a text: "NaN", "1.5"."""
    text = text.strip()
    if text.lstrip("+-") in {"NaN", "Infinity"} and len(text) - len(text.lstrip("+-")) <= 1:
        return float(text)
    if not DECIMAL.fullmatch(text):
        raise InvalidSchema(f'the default "{text}" is no number (at {place})')
    return float(text.rstrip("fFdD"))


def misfit(node: Type, value: Json) -> bool:
    """Whether the value is none of this type. A union takes values of any of its branches."""
    match node:
        case Primitive("null"):
            return value is not None
        case Primitive("boolean"):
            return not isinstance(value, bool)
        case Primitive("int" | "long"):
            limit = INT_RANGES[node.kind]
            return not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit
        case Primitive("float" | "double"):
            return not isinstance(value, int | float) or isinstance(value, bool)
        case Primitive() | Enum() | Fixed():
            return not isinstance(value, str)
        case Array():
            return not isinstance(value, list) or any(misfit(node.items, one) for one in value)
        case Map():
            return not isinstance(value, dict) or any(misfit(node.values, one) for one in value.values())
        case Union():
            return all(misfit(branch, value) for branch in node.branches)
        case Record():
            return not isinstance(value, dict) or any(
                isinstance(one.default, Absent)
                if one.name not in value
                else misfit(one.type, value[one.name])
                for one in node.fields
            )

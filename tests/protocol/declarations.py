"""Every message that is declared, and values for it from Hypothesis, drawn from its schema."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from hypothesis import strategies as st

import barnabas.protocol.headers
import barnabas.protocol.log_records
import barnabas.protocol.messages
from barnabas.protocol import ErrorCode, Message, Struct
from barnabas.protocol.schema import Field

MODULES = [
    importlib.import_module(f"{package.__name__}.{module.name}")
    for package in (barnabas.protocol.messages, barnabas.protocol.log_records)
    for module in pkgutil.iter_modules(package.__path__)
]
MODULES.append(barnabas.protocol.headers)

MESSAGES: list[type[Message]] = [
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
]

BY_NAME = {cls.__name__: cls for cls in MESSAGES}

RANGES = {
    "Int8": (-(2**7), 2**7 - 1),
    "Int16": (-(2**15), 2**15 - 1),
    "UInt16": (0, 2**16 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "UInt32": (0, 2**32 - 1),
    "Int64": (-(2**63), 2**63 - 1),
}

TEXT = st.text(max_size=8) | st.sampled_from(["a" * 127, "ü" * 64, "x" * 200])
BLOB = st.binary(max_size=8) | st.sampled_from([bytes(126), bytes(127), bytes(128), bytes(17_000)])
ARRAY_SIZE_MAX = 3


@cache
def values(cls: type[Struct], version: int, tame: bool = False) -> st.SearchStrategy[Any]:
    """Messages that `version` can carry in full; `tame` ones are small and sane, for choosy readers."""
    fields = [field for field in cls.schema.fields if version in field.versions]
    names = [field.name for field in fields]
    drawn = st.tuples(*(field_values(field, version, tame) for field in fields))
    return drawn.map(lambda contents: cls(**dict(zip(names, contents, strict=True))))


def field_values(field: Field, version: int, tame: bool) -> st.SearchStrategy[Any]:
    one = element_values(field, version, tame)
    if field.is_array:
        one = st.lists(one, max_size=ARRAY_SIZE_MAX)
    return st.none() | one if version in field.nullable else one


def element_values(field: Field, version: int, tame: bool) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        return values(field.struct, version, tame)
    if tame and field.type == "Int16" and "error_code" in field.name:
        return st.sampled_from([int(code) for code in ErrorCode])
    if field.type in RANGES:
        low, high = RANGES[field.type]
        return st.integers(0, min(high, 10**9)) if tame else st.integers(low, high)
    others: dict[str, st.SearchStrategy[Any]] = {
        "Bool": st.booleans(),
        "Float64": st.floats(allow_nan=False),
        "Uuid": st.binary(min_size=16, max_size=16),
        "String": TEXT,
        "Bytes": BLOB,
        "Records": BLOB,
    }
    return others[field.type]

"""Objects of a class as plain values, and objects from plain values.

In: objects, or what a codec has read. Out: dicts and lists that codecs write, or objects, with the objects
inside of them. Does not know: schemas. pydantic is imported when the first object is made.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from functools import cache
from typing import Any


def plain(value: Any) -> Any:
    """Objects become dicts, members of enums their values, tuples and sets lists; the rest stays."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        value = value.model_dump(by_alias=True)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return value


def json_value(kind: Any, value: Any) -> Any:
    """An object as values of JSON: dates, decimals and the like are texts."""
    return adapter_of(kind).dump_python(value, mode="json", by_alias=True)


def object_of(kind: Any, value: Any) -> Any:
    """An object of the class from a dict; dicts inside of it become objects too."""
    return adapter_of(kind).validate_python(value)


@cache
def adapter_of(kind: Any) -> Any:
    """pydantic's reader and writer of a class."""
    import pydantic

    return pydantic.TypeAdapter(kind)

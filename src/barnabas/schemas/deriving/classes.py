"""Dataclasses and pydantic models as their fields: names, types, defaults.

In: a class. Out: fields in order, with annotations that are resolved. Does not know: schemas.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, NamedTuple, get_type_hints

REQUIRED: Final = object()  # the default of a field that has none


class UnknownType(TypeError):
    """A class or an annotation that has no counterpart in a schema."""


class Member(NamedTuple):
    """A field of a class. `default` is REQUIRED, or the value that an object gets without the field."""

    name: str
    annotation: Any
    default: Any


def is_model(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_validate")


def is_described(kind: Any) -> bool:
    """Whether a class has fields that a schema can be derived from."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or is_model(kind))


def members_of(kind: Any) -> list[Member]:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise UnknownType(
            f"{kind.__qualname__}: {error}; its annotations must name types of its module"
        ) from None
    if is_model(kind):
        return [
            Member(field.alias or name, hints[name], _model_default(field))
            for name, field in kind.model_fields.items()
        ]
    return [Member(field.name, hints[field.name], _default(field)) for field in dataclasses.fields(kind)]


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return REQUIRED if field.default_factory is dataclasses.MISSING else field.default_factory()


def _model_default(field: Any) -> Any:
    return REQUIRED if field.is_required() else field.get_default(call_default_factory=True)

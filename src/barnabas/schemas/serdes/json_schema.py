"""JSON payloads, checked by jsonschema.

In: a JSON Schema with its references; values or payloads. Out: payloads or values. Does not know: prefixes,
subjects. jsonschema is imported when a codec is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.schemas.client.values import Schema
from barnabas.schemas.model import ResolvedReference


class JsonCodec:
    """One JSON Schema and its validator. JSON is written without spaces, in UTF-8."""

    def __init__(
        self,
        schema: Schema,
        references: Sequence[ResolvedReference],
        *,
        validate: bool = True,
        dumps: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        content = json.loads(schema.text)
        title = content.get("title") if isinstance(content, dict) else None
        self.name = title if isinstance(title, str) else None
        self._dumps = dumps or compact
        self._validator = validator_of(content, references) if validate else None

    def encode(self, value: Any) -> bytes:
        self.check(value)
        text = self._dumps(value)
        return text.encode() if isinstance(text, str) else text

    def decode(self, payload: bytes) -> Any:
        return json.loads(payload)

    def check(self, value: Any) -> None:
        if self._validator is None:
            return
        error = next(self._validator.iter_errors(value), None)
        if error is not None:
            raise ValueError(f"{error.message} (at {error.json_path})")


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def validator_of(content: Any, references: Sequence[ResolvedReference]) -> Any:
    """A validator by the draft that the schema names, else by draft 7, with references by their names."""
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    registry: Registry[Any] = Registry()
    for one in references:
        resource = Resource.from_contents(json.loads(one.text), default_specification=DRAFT7)
        registry = registry.with_resource(one.reference.name, resource)
        if (own := resource.id()) is not None:
            registry = registry.with_resource(own, resource)
    return validator_for(content, default=Draft7Validator)(content, registry=registry)

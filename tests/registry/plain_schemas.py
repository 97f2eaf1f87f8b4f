"""A schema language for tests: fields in JSON, so that registering does not depend on the real languages.

The text is a JSON object of fields and their defaults, or null for none: `{"a": null, "b": 0}`. Spaces do not
matter; normalizing sorts the fields. A reader's field without default must be in the writer's schema.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.schemas.model import (
    CompatibilityPolicy,
    Incompatibility,
    InvalidSchema,
    Reference,
    ResolvedReference,
    SchemaType,
)


@dataclass(frozen=True)
class PlainSchema:
    schema_type: SchemaType
    fields: dict[str, Any]
    referenced: tuple[ResolvedReference, ...] = ()

    @property
    def canonical(self) -> str:
        return json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False)

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(each.reference for each in self.referenced)

    @property
    def name(self) -> str | None:
        return None

    def normalized(self) -> PlainSchema:
        return PlainSchema(self.schema_type, dict(sorted(self.fields.items())), self.referenced)

    def formatted(self, form: str) -> str:
        if form != "resolved":
            return self.canonical
        texts = {each.reference.name: json.loads(each.text) for each in self.referenced}
        return json.dumps(
            {name: texts.get(name, value) for name, value in self.fields.items()}, separators=(",", ":")
        )

    def field_names(self) -> frozenset[str]:
        return frozenset(self.fields)

    def incompatibilities(self, writer: PlainSchema, policy: CompatibilityPolicy) -> list[Incompatibility]:
        missing = [
            name for name, default in self.fields.items() if default is None and name not in writer.fields
        ]
        return [
            Incompatibility("MISSING", f"/{name}", f"{{errorType:'MISSING', field:'{name}'}}")
            for name in missing
        ]


def parse(
    schema_type: str, text: str, references: Sequence[ResolvedReference] = (), *, strict: bool = False
) -> PlainSchema:
    try:
        kind, fields = SchemaType(schema_type), json.loads(text)
    except ValueError as error:
        raise InvalidSchema(str(error)) from None
    if not isinstance(fields, dict) or (strict and "bad default" in fields.values()):
        raise InvalidSchema("not an object of fields with good defaults")
    return PlainSchema(kind, fields, tuple(references))

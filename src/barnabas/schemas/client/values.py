"""Schemas as a registry's API has them, and the responses of its endpoints.

In: JSON of the API. Out: frozen values, and JSON again. Does not know: HTTP, caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.schemas.model import Reference

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it is registered: its text, its type, and references by subject and version."""

    text: str
    schema_type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    rule_set: Mapping[str, Any] | None = field(default=None, hash=False)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"schema": self.text}
        if self.schema_type != AVRO:
            body["schemaType"] = self.schema_type
        if self.references:
            body["references"] = [reference_to_json(one) for one in self.references]
        if self.metadata is not None:
            body["metadata"] = dict(self.metadata)
        if self.rule_set is not None:
            body["ruleSet"] = dict(self.rule_set)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Schema:
        return cls(
            body.get("schema") or "",
            body.get("schemaType") or AVRO,
            tuple(reference_from_json(one) for one in body.get("references") or ()),
            body.get("metadata"),
            body.get("ruleSet"),
        )


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with the numbers that a registry gave it. Older servers have no GUID."""

    schema: Schema
    id: int
    guid: str | None = None
    subject: str | None = None
    version: int | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RegisteredSchema:
        return cls(
            Schema.from_json(body),
            int(body.get("id") or 0),
            body.get("guid"),
            body.get("subject"),
            body.get("version"),
        )

    def with_schema(self, schema: Schema) -> RegisteredSchema:
        return replace(self, schema=schema)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a schema may be registered, and why not."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


def reference_to_json(reference: Reference) -> dict[str, Any]:
    return {"name": reference.name, "subject": reference.subject, "version": reference.version}


def reference_from_json(body: Mapping[str, Any]) -> Reference:
    return Reference(body["name"], body["subject"], int(body["version"]))

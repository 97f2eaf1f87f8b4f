"""A schema registry in memory: the port of embedded data, without HTTP."""

from __future__ import annotations

from barnabas.rest.formats.errors import SchemaNotFound
from barnabas.rest.formats.source import KnownSchema
from barnabas.schemas.model import ResolvedReference, SchemaType


class MemorySource:
    def __init__(self) -> None:
        self.schemas: dict[int, KnownSchema] = {}
        self.subjects: dict[str, list[int]] = {}
        self.questions: list[str] = []

    def put(
        self, subject: str, schema_type: SchemaType, text: str, references: tuple[ResolvedReference, ...] = ()
    ) -> KnownSchema:
        for known in self.schemas.values():
            if (known.schema_type, known.text) == (schema_type, text):
                schema_id = known.schema_id
                break
        else:
            schema_id = len(self.schemas) + 1
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        version = versions.index(schema_id) + 1
        known = KnownSchema(schema_id, schema_type, text, references, subject, version)
        self.schemas[schema_id] = known
        return known

    async def by_id(self, schema_id: int) -> KnownSchema:
        self.questions.append(f"id {schema_id}")
        if schema_id not in self.schemas:
            raise SchemaNotFound(f"Schema {schema_id} not found")
        return self.schemas[schema_id]

    async def by_version(self, subject: str, version: int) -> KnownSchema:
        self.questions.append(f"{subject} {version}")
        versions = self.subjects.get(subject, [])
        if not 0 < version <= len(versions):
            raise SchemaNotFound(f"Version {version} of {subject} not found")
        return self.schemas[versions[version - 1]]

    async def latest(self, subject: str) -> KnownSchema:
        self.questions.append(f"latest {subject}")
        if subject not in self.subjects:
            raise SchemaNotFound(f"Subject {subject} not found")
        return self.schemas[self.subjects[subject][-1]]

    async def register(self, subject: str, schema_type: SchemaType, text: str) -> KnownSchema:
        self.questions.append(f"register {subject}")
        return self.put(subject, schema_type, text)

    async def version_of(self, subject: str, schema_id: int) -> int | None:
        versions = self.subjects.get(subject, [])
        return versions.index(schema_id) + 1 if schema_id in versions else None

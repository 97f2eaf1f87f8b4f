"""The port to a schema registry, as far as embedded data need one.

In: ids, subjects, versions, texts. Out: schemas with their references resolved.
SchemaNotFound, SchemaRefused and RegistryFailure say why there is none.
Does not know: HTTP, caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from barnabas.rest.formats.errors import RegistryFailure
from barnabas.schemas.model import ResolvedReference, SchemaType


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema that a registry gave an id. `subject` and `version` say where it was found, if it was."""

    schema_id: int
    schema_type: SchemaType
    text: str
    references: tuple[ResolvedReference, ...] = ()
    subject: str | None = None
    version: int | None = None


class SchemaSource(Protocol):
    async def by_id(self, schema_id: int) -> KnownSchema: ...

    async def by_version(self, subject: str, version: int) -> KnownSchema: ...

    async def latest(self, subject: str) -> KnownSchema: ...

    async def register(self, subject: str, schema_type: SchemaType, text: str) -> KnownSchema:
        """The schema under this subject, registered if it was not; its version if the registry says it."""

    async def version_of(self, subject: str, schema_id: int) -> int | None:
        """The version that the schema has in the subject; None if the subject does not hold it."""


class NoRegistry:
    """The source of a proxy without `schema.registry.url`."""

    def _fail(self) -> KnownSchema:
        raise RegistryFailure("This proxy has no schema registry: set schema.registry.url.")

    async def by_id(self, schema_id: int) -> KnownSchema:
        return self._fail()

    async def by_version(self, subject: str, version: int) -> KnownSchema:
        return self._fail()

    async def latest(self, subject: str) -> KnownSchema:
        return self._fail()

    async def register(self, subject: str, schema_type: SchemaType, text: str) -> KnownSchema:
        return self._fail()

    async def version_of(self, subject: str, schema_id: int) -> int | None:
        self._fail()
        return None

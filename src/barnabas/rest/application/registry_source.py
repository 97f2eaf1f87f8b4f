"""Schemas from a registry over HTTP, for embedded data.

In: a client of the registry. Out: schemas with their references resolved; the registry's errors as those of
formats. Does not know: codecs, caches of formats.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas.rest.formats.errors import RegistryFailure, SchemaNotFound, SchemaRefused
from barnabas.rest.formats.source import KnownSchema
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.faces import AsyncSchemaRegistryClient
from barnabas.schemas.client.values import RegisteredSchema, Schema
from barnabas.schemas.model import SchemaType

UNPROCESSABLE = 422

T = TypeVar("T")


class RegistrySource:
    def __init__(self, client: AsyncSchemaRegistryClient) -> None:
        self._client = client

    async def by_id(self, schema_id: int) -> KnownSchema:
        return await self._known(lambda: self._client.get_schema(schema_id), schema_id)

    async def by_version(self, subject: str, version: int) -> KnownSchema:
        return await self._known(lambda: self._client.get_version(subject, version))

    async def latest(self, subject: str) -> KnownSchema:
        return await self._known(lambda: self._client.get_version(subject))

    async def register(self, subject: str, schema_type: SchemaType, text: str) -> KnownSchema:
        schema = Schema(text, schema_type)
        return await self._known(lambda: self._client.register_schema(subject, schema))

    async def version_of(self, subject: str, schema_id: int) -> int | None:
        usages = await asked(lambda: self._client.get_usages(schema_id))
        return next((version for name, version in usages if name == subject), None)

    async def close(self) -> None:
        await self._client.close()

    async def _known(
        self, ask: Callable[[], Awaitable[RegisteredSchema]], schema_id: int | None = None
    ) -> KnownSchema:
        found = await asked(ask)
        schema = found.schema
        references = await asked(lambda: self._client.core.resolved(schema)) if schema.references else []
        return KnownSchema(
            found.id if schema_id is None else schema_id,
            SchemaType(schema.schema_type),
            schema.text,
            tuple(references),
            found.subject,
            found.version,
        )


async def asked(ask: Callable[[], Awaitable[T]]) -> T:
    try:
        return await ask()
    except RegistryError as error:
        if error.is_not_found:
            raise SchemaNotFound(error.message) from None
        if error.status == UNPROCESSABLE:
            raise SchemaRefused(error.message) from None
        raise RegistryFailure(f"The schema registry: {error.message}") from None
    except ValueError as error:  # a type of schemas that is not known here, a response that is none
        raise RegistryFailure(f"The response of the schema registry cannot be used: {error}") from None

"""A codec for each schema, made once: serializers of all types share them.

In: schemas with their references. Out: codecs, remembered. Does not know: encodings; each type has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.schemas.client.caching import Cache
from barnabas.schemas.client.core import RegistryCore
from barnabas.schemas.client.values import Schema
from barnabas.schemas.model import ResolvedReference

CODECS_MAX = 1000


class Codec(Protocol):
    """Encodes values with one schema. `name` is that of its record, for subject name strategies."""

    @property
    def name(self) -> str | None: ...

    def encode(self, value: Any) -> bytes: ...


C = TypeVar("C")


class Codecs:
    """Codecs of one type by schema. References are fetched when a schema is first used."""

    def __init__(
        self,
        core: RegistryCore,
        make: Callable[[Schema, Sequence[ResolvedReference]], C],
        form: str | None = None,
    ) -> None:
        self._core = core
        self._make = make
        self._form = form
        self._made: Cache[C] = Cache(CODECS_MAX)

    async def of(self, schema: Schema) -> Any:
        key = (schema.text, schema.references)
        found = self._made.get(key)
        if found is None:
            found = self._make(schema, await self._core.resolved(schema, self._form))
            self._made.put(key, found)
        return found

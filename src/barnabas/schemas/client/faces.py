"""The two clients of a registry: one that blocks, one for asyncio.

In: settings in Confluent's names. Out: the endpoints as methods. Does not know: how they work; both run the
same coroutines.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.schemas.client.core import RegistryCore
from barnabas.schemas.client.settings import ClientSettings
from barnabas.schemas.client.values import RegisteredSchema, Schema, Verdict

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine over the blocking port, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("this client belongs to an event loop: use the asynchronous serializers with it")


class SchemaRegistryClient:
    """A blocking client. Threads may share it.

    `conf` is a URL, or properties: `url` (several with commas), `basic.auth.user.info`, `bearer.auth.token`,
    `ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`, `timeout` in seconds, `max.retries`,
    `retries.wait.ms`, `retries.max.wait.ms`, `cache.capacity`, `cache.latest.ttl.sec`.
    """

    def __init__(self, conf: str | Mapping[str, Any], *, http: httpx.Client | None = None) -> None:
        from barnabas.schemas.client.http import BlockingPort

        settings = ClientSettings.of(conf)
        self._port = BlockingPort(settings, http)
        self.core = RegistryCore(settings, self._port)

    def register_schema(self, subject: str, schema: Schema, normalize: bool = False) -> RegisteredSchema:
        return run(self.core.register(subject, schema, normalize))

    def lookup_schema(
        self, subject: str, schema: Schema, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        return run(self.core.lookup(subject, schema, normalize, deleted))

    def get_schema(
        self, schema_id: int, subject: str | None = None, form: str | None = None
    ) -> RegisteredSchema:
        return run(self.core.by_id(schema_id, subject, form))

    def get_schema_by_guid(self, guid: str, form: str | None = None) -> RegisteredSchema:
        return run(self.core.by_guid(guid, form))

    def get_version(
        self, subject: str, version: int | str = "latest", deleted: bool = False, form: str | None = None
    ) -> RegisteredSchema:
        return run(self.core.version(subject, version, deleted, form))

    def get_latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], deleted: bool = False
    ) -> RegisteredSchema:
        return run(self.core.latest_with_metadata(subject, metadata, deleted))

    def get_subjects(self, prefix: str | None = None, deleted: bool = False) -> list[str]:
        return run(self.core.subjects(prefix, deleted))

    def get_versions(self, subject: str, deleted: bool = False) -> list[int]:
        return run(self.core.versions(subject, deleted))

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        return run(self.core.delete_subject(subject, permanent))

    def delete_version(self, subject: str, version: int | str, permanent: bool = False) -> int:
        return run(self.core.delete_version(subject, version, permanent))

    def get_referenced_by(self, subject: str, version: int | str) -> list[int]:
        return run(self.core.referenced_by(subject, version))

    def get_usages(self, schema_id: int) -> list[tuple[str, int]]:
        return run(self.core.usages(schema_id))

    def test_compatibility(
        self, subject: str, schema: Schema, version: int | str | None = "latest", normalize: bool = False
    ) -> Verdict:
        return run(self.core.check(subject, schema, version, normalize))

    def get_config(self, subject: str | None = None, default_to_global: bool = False) -> dict[str, Any]:
        return run(self.core.config(subject, default_to_global))

    def set_config(self, changes: Mapping[str, Any], subject: str | None = None) -> dict[str, Any]:
        return run(self.core.set_config(changes, subject))

    def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        return run(self.core.delete_config(subject))

    def get_mode(self, subject: str | None = None, default_to_global: bool = False) -> str:
        return run(self.core.mode(subject, default_to_global))

    def set_mode(self, mode: str, subject: str | None = None, force: bool = False) -> str:
        return run(self.core.set_mode(mode, subject, force))

    def get_contexts(self) -> list[str]:
        return run(self.core.contexts())

    def close(self) -> None:
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncSchemaRegistryClient:
    """The client for asyncio, with the properties of SchemaRegistryClient. Its endpoints are coroutines."""

    def __init__(self, conf: str | Mapping[str, Any], *, http: httpx.AsyncClient | None = None) -> None:
        from barnabas.schemas.client.http import AsyncioPort

        settings = ClientSettings.of(conf)
        self._port = AsyncioPort(settings, http)
        self.core = core = RegistryCore(settings, self._port)
        self.register_schema = core.register
        self.lookup_schema = core.lookup
        self.get_schema = core.by_id
        self.get_schema_by_guid = core.by_guid
        self.get_version = core.version
        self.get_latest_with_metadata = core.latest_with_metadata
        self.get_subjects = core.subjects
        self.get_versions = core.versions
        self.delete_subject = core.delete_subject
        self.delete_version = core.delete_version
        self.get_referenced_by = core.referenced_by
        self.get_usages = core.usages
        self.test_compatibility = core.check
        self.get_config = core.config
        self.set_config = core.set_config
        self.delete_config = core.delete_config
        self.get_mode = core.mode
        self.set_mode = core.set_mode
        self.get_contexts = core.contexts

    async def close(self) -> None:
        await self._port.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

"""The endpoints of a registry as coroutines, with caches of schemas that never change.

In: subjects, versions, ids, schemas. Out: values of the API, or RegistryError. Does not know: HTTP clients;
which face runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from barnabas.schemas.client.caching import Cache
from barnabas.schemas.client.calling import Caller, Port
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.settings import ClientSettings
from barnabas.schemas.client.values import RegisteredSchema, Schema, Verdict
from barnabas.schemas.model import Reference, ResolvedReference

REFERENCES_MAX = 1000  # of one schema, those of its references included


def path(*parts: object) -> str:
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


class RegistryCore:
    """The part that both faces share. A schema with an id never changes, so it is asked for once."""

    def __init__(self, settings: ClientSettings, port: Port) -> None:
        self._caller = Caller(settings, port)
        self._now = port.now
        capacity = settings.cache_capacity
        self._by_id: Cache[RegisteredSchema] = Cache(capacity)
        self._by_guid: Cache[RegisteredSchema] = Cache(capacity)
        self._by_text: Cache[RegisteredSchema] = Cache(capacity)
        self._versions: Cache[RegisteredSchema] = Cache(capacity)
        self._latest: Cache[RegisteredSchema] = Cache(capacity, settings.latest_ttl_s)

    # Schemas

    async def register(self, subject: str, schema: Schema, normalize: bool = False) -> RegisteredSchema:
        """Register a schema, or get the numbers that it has."""
        key = (subject, schema, normalize)
        found = self._by_text.get(key)
        if found is None:
            body = await self._caller.call(
                "POST", path("subjects", subject, "versions"), {"normalize": normalize}, schema.to_json()
            )
            found = RegisteredSchema(schema, int(body["id"]), body.get("guid"), subject, body.get("version"))
            self._by_text.put(key, found)
            self._latest.clear()
        return found

    async def lookup(
        self, subject: str, schema: Schema, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """The numbers of a schema that is registered under the subject."""
        key = (subject, schema, normalize, deleted, "lookup")
        found = self._by_text.get(key)
        if found is None:
            query = {"normalize": normalize, "deleted": deleted}
            body = await self._caller.call("POST", path("subjects", subject), query, schema.to_json())
            found = RegisteredSchema.from_json(body)
            self._by_text.put(key, found)
        return found

    async def by_id(
        self, schema_id: int, subject: str | None = None, form: str | None = None
    ) -> RegisteredSchema:
        """A schema by its id. Ids count in a context: the subject says in which."""
        key = (schema_id, subject, form)
        found = self._by_id.get(key)
        if found is None:
            query = {"subject": subject, "format": form}
            body = await self._caller.call("GET", path("schemas", "ids", schema_id), query)
            found = RegisteredSchema.from_json({**body, "id": schema_id})
            self._by_id.put(key, found)
        return found

    async def by_guid(self, guid: str, form: str | None = None) -> RegisteredSchema:
        key = (guid, form)
        found = self._by_guid.get(key)
        if found is None:
            body = await self._caller.call("GET", path("schemas", "guids", guid), {"format": form})
            found = RegisteredSchema.from_json({**body, "guid": guid})
            self._by_guid.put(key, found)
        return found

    async def version(
        self, subject: str, version: int | str = "latest", deleted: bool = False, form: str | None = None
    ) -> RegisteredSchema:
        """A version of a subject; `latest` is remembered for `cache.latest.ttl.sec`."""
        is_latest = version in {"latest", -1, "-1"}
        cache, key = (self._latest if is_latest else self._versions), (subject, version, deleted, form)
        found = cache.get(key, self._now())
        if found is None:
            where = path("subjects", subject, "versions", version)
            found = RegisteredSchema.from_json(
                await self._caller.call("GET", where, {"deleted": deleted, "format": form})
            )
            cache.put(key, found, self._now())
        return found

    async def latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], deleted: bool = False, form: str | None = None
    ) -> RegisteredSchema:
        """The latest version whose metadata has these properties."""
        key = (subject, tuple(sorted(metadata.items())), deleted, form)
        found = self._latest.get(key, self._now())
        if found is None:
            query = {"key": [*metadata], "value": [*metadata.values()], "deleted": deleted, "format": form}
            found = RegisteredSchema.from_json(
                await self._caller.call("GET", path("subjects", subject, "metadata"), query)
            )
            self._latest.put(key, found, self._now())
        return found

    async def resolved(self, schema: Schema, form: str | None = None) -> list[ResolvedReference]:
        """The schemas that a schema refers to, those of references first, each name once."""
        found: dict[str, ResolvedReference] = {}
        await self._resolve(schema.references, form, found, ())
        return list(found.values())

    async def _resolve(
        self,
        references: tuple[Reference, ...],
        form: str | None,
        found: dict[str, ResolvedReference],
        inside: tuple[str, ...],
    ) -> None:
        for one in references:
            if one.name in found:
                continue
            if one.name in inside:
                raise RegistryError(0, 0, f"references go in a circle: {' -> '.join((*inside, one.name))}")
            if len(found) >= REFERENCES_MAX:
                raise RegistryError(0, 0, f"the schema has more than {REFERENCES_MAX} references")
            schema = (await self.version(one.subject, one.version, deleted=True, form=form)).schema
            await self._resolve(schema.references, form, found, (*inside, one.name))
            found[one.name] = ResolvedReference(one, schema.text, schema.references)

    # Subjects and versions

    async def subjects(self, prefix: str | None = None, deleted: bool = False) -> list[str]:
        query = {"subjectPrefix": prefix, "deleted": deleted}
        return list(await self._caller.call("GET", "/subjects", query))

    async def versions(self, subject: str, deleted: bool = False) -> list[int]:
        return list(
            await self._caller.call("GET", path("subjects", subject, "versions"), {"deleted": deleted})
        )

    async def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        response = await self._caller.call("DELETE", path("subjects", subject), {"permanent": permanent})
        self._forget()
        return list(response)

    async def delete_version(self, subject: str, version: int | str, permanent: bool = False) -> int:
        where = path("subjects", subject, "versions", version)
        response = await self._caller.call("DELETE", where, {"permanent": permanent})
        self._forget()
        return int(response)

    def _forget(self) -> None:
        for cache in (self._by_text, self._versions, self._latest):
            cache.clear()

    async def referenced_by(self, subject: str, version: int | str) -> list[int]:
        where = path("subjects", subject, "versions", version, "referencedby")
        return list(await self._caller.call("GET", where))

    async def usages(self, schema_id: int) -> list[tuple[str, int]]:
        """Subjects and versions that have the id."""
        response = await self._caller.call("GET", path("schemas", "ids", schema_id, "versions"))
        return [(one["subject"], one["version"]) for one in response]

    # Compatibility, config, mode

    async def check(
        self, subject: str, schema: Schema, version: int | str | None = "latest", normalize: bool = False
    ) -> Verdict:
        """Whether a schema is compatible with a version, or by the subject's level if it is None."""
        where = path(
            "compatibility", "subjects", subject, "versions", *([] if version is None else [version])
        )
        query = {"verbose": True, "normalize": normalize}
        body = await self._caller.call("POST", where, query, schema.to_json())
        return Verdict(bool(body["is_compatible"]), tuple(body.get("messages") or ()))

    async def config(self, subject: str | None = None, default_to_global: bool = False) -> dict[str, Any]:
        where = path("config", *([subject] if subject else []))
        return dict(await self._caller.call("GET", where, {"defaultToGlobal": default_to_global}))

    async def set_config(self, changes: Mapping[str, Any], subject: str | None = None) -> dict[str, Any]:
        where = path("config", *([subject] if subject else []))
        return dict(await self._caller.call("PUT", where, None, dict(changes)))

    async def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        return dict(await self._caller.call("DELETE", path("config", *([subject] if subject else []))))

    async def mode(self, subject: str | None = None, default_to_global: bool = False) -> str:
        where = path("mode", *([subject] if subject else []))
        body = await self._caller.call("GET", where, {"defaultToGlobal": default_to_global})
        return str(body["mode"])

    async def set_mode(self, mode: str, subject: str | None = None, force: bool = False) -> str:
        where = path("mode", *([subject] if subject else []))
        return str((await self._caller.call("PUT", where, {"force": force}, {"mode": mode}))["mode"])

    async def contexts(self) -> list[str]:
        return list(await self._caller.call("GET", "/contexts"))

    async def import_version(self, subject: str, schema: Schema, schema_id: int, version: int) -> int:
        """Register a schema under a given id and version: the subject must be in mode IMPORT."""
        body = {**schema.to_json(), "id": schema_id, "version": version}
        response = await self._caller.call("POST", path("subjects", subject, "versions"), None, body)
        self._forget()
        return int(response["id"])

"""Endpoints under /subjects that read: lists, versions, lookups."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from barnabas.registry.api import response_bodies
from barnabas.registry.api.bodies import schema_request
from barnabas.registry.api.call import Call, as_json
from barnabas.registry.api.components import DELETED, FORMAT, NO_BODY, NORMALIZE, PAGE, TYPES, failures
from barnabas.registry.api.texts import formatted
from barnabas.registry.state import lookups, refusals
from barnabas.registry.state.model import Version
from barnabas.registry.state.names import ALL_CONTEXTS
from barnabas.registry.state.registering import lookup
from barnabas.services.openapi import Operations, Parameter
from barnabas.services.routes import Need

operations = Operations("Subjects")
DELETED_ONLY = Parameter("deletedOnly", "boolean", "Soft-deleted ones only")


async def shown(call: Call, version: Version) -> dict[str, Any]:
    text = await formatted(call.api, version.content, version.subject.context.name, call.text("format") or "")
    found = response_bodies.whole(version, text, call.api.settings.is_classic)
    return {**found, **response_bodies.tags(version.content, call.texts("findTags"))}


@operations.declare(
    "GET",
    "/subjects",
    "Names of subjects",
    responses={200: ["string"]},
    query=(
        Parameter("subjectPrefix", text="The beginning of the names; :*: for all contexts"),
        DELETED,
        DELETED_ONLY,
        *PAGE,
    ),
    errors=failures(50001),
    **TYPES,
)
async def subjects(call: Call) -> bytes:
    return await call.api.work(names_of_subjects, call)


def names_of_subjects(call: Call) -> bytes:
    only_deleted = call.flag("deletedOnly")
    found = lookups.subjects(
        call.api.state,
        call.prefix(ALL_CONTEXTS),
        live=not only_deleted,
        deleted=only_deleted or call.flag("deleted"),
    )
    return as_json(call.page().of((each.name for each in found), call.api.settings.subject_limit))


@operations.declare(
    "POST",
    "/subjects/{subject}",
    "The version that has a schema",
    responses={200: "Schema"},
    query=(NORMALIZE, FORMAT, DELETED),
    request="RegisterSchemaRequest",
    errors=(*NO_BODY, *failures(40401, 40403, 42201, 42209, 50001)),
    needs=Need.READ,
    **TYPES,
)
async def lookup_schema(call: Call) -> dict[str, Any]:
    api, name, include_deleted = call.api, call.subject(), call.flag("deleted")
    request = schema_request(await call.body(), api.settings.schema_bytes_max)
    lookups.existing_subject(api.state, name, include_deleted=include_deleted)
    found = await api.work(
        lookup,
        name,
        request,
        api.state,
        api.reader,
        normalize=call.flag("normalize"),
        include_deleted=include_deleted,
    )
    if found is None:
        raise refusals.schema_not_found()
    return await shown(call, found)


@operations.declare(
    "GET",
    "/subjects/{subject}/versions",
    "Numbers of a subject's versions",
    responses={200: ["integer"]},
    query=(
        DELETED,
        DELETED_ONLY,
        Parameter("deletedAsNegative", "boolean", "Soft-deleted ones too, as negative numbers"),
        *PAGE,
    ),
    errors=failures(40401, 50001),
    **TYPES,
)
async def versions(call: Call) -> list[int]:
    only_deleted, as_negative = call.flag("deletedOnly"), call.flag("deletedAsNegative")
    deleted = only_deleted or as_negative or call.flag("deleted")
    subject = lookups.existing_subject(call.api.state, call.subject(), include_deleted=deleted)
    found = subject.sorted(live=not only_deleted, deleted=deleted)
    numbers = (-each.number if as_negative and each.is_deleted else each.number for each in found)
    return call.page().of(numbers, call.api.settings.version_limit)


@operations.declare(
    "GET",
    "/subjects/{subject}/versions/{version}",
    "A version of a subject",
    responses={200: "Schema"},
    query=(
        FORMAT,
        DELETED,
        Parameter("referenceFormat", text="Ignored"),
        Parameter("findTags", ["string"], "Tell which parts have these tags; *: any"),
    ),
    errors=failures(40401, 40402, 42202, 50001),
    **TYPES,
)
async def version_of_subject(call: Call) -> dict[str, Any]:
    return await shown(call, wanted(call))


def wanted(call: Call) -> Version:
    return lookups.version_in(
        call.api.state, call.subject(), call.version(), include_deleted=call.flag("deleted")
    )


@operations.declare(
    "GET",
    "/subjects/{subject}/versions/{version}/schema",
    "The bare text of a version",
    responses={200: "any"},
    query=(FORMAT, DELETED),
    errors=failures(40401, 40402, 42202, 50001),
    **TYPES,
)
async def text_of_version(call: Call) -> Response:
    version = wanted(call)
    text = await formatted(call.api, version.content, version.subject.context.name, call.text("format") or "")
    return Response(version.content.text if text is None else text, media_type=call.media_type)


@operations.declare(
    "GET",
    "/subjects/{subject}/versions/{version}/referencedby",
    "Ids of schemas that refer to a version",
    responses={200: ["integer"]},
    query=(DELETED, *PAGE),
    errors=failures(40401, 40402, 42202, 50001),
    **TYPES,
)
async def referenced_by(call: Call) -> list[int]:
    include_deleted = call.flag("deleted")
    version = lookups.version_in(call.api.state, call.subject(), call.version(), include_deleted=True)
    referring = call.api.state.references.referring(version)
    ids = sorted({each.schema_id for each in referring if include_deleted or not each.is_deleted})
    return call.page().of(iter(ids), call.api.settings.version_limit)


@operations.declare(
    "GET",
    "/subjects/{subject}/metadata",
    "The latest version whose metadata has these properties",
    responses={200: "Schema"},
    query=(
        Parameter("key", ["string"], "Names of properties"),
        Parameter("value", ["string"], "Their values, in the same order"),
        FORMAT,
        DELETED,
    ),
    errors=failures(40401, 40403, 50001),
    **TYPES,
)
async def version_with_metadata(call: Call) -> dict[str, Any]:
    include_deleted = call.flag("deleted")
    subject = lookups.existing_subject(call.api.state, call.subject(), include_deleted=include_deleted)
    names, values = call.texts("key"), call.texts("value")
    if len(names) != len(values):
        raise refusals.malformed(f"{len(names)} parameters key and {len(values)} parameters value")
    properties = dict(zip(names, values, strict=True))
    found = lookups.latest_with_properties(subject, properties, include_deleted=include_deleted)
    if found is None:
        raise refusals.schema_not_found()
    return await shown(call, found)

"""Endpoints under /schemas: by id, by guid, all of them, and the known types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from barnabas.registry.api import response_bodies
from barnabas.registry.api.call import Call, as_json
from barnabas.registry.api.components import DELETED, FORMAT, PAGE, TYPES, failures
from barnabas.registry.api.texts import formatted
from barnabas.registry.state import lookups
from barnabas.registry.state.model import Version
from barnabas.schemas.model import SchemaType
from barnabas.services.openapi import Operations, Parameter

operations = Operations("Schemas")
SUBJECT = Parameter("subject", text="A subject that has the schema, or a context: :.ctx:")
FIND_TAGS = Parameter("findTags", ["string"], "Tell which parts have these tags; *: any")


@operations.declare(
    "GET",
    "/schemas/ids/{id}",
    "A schema by its id",
    responses={200: "SchemaString"},
    query=(
        SUBJECT,
        FORMAT,
        Parameter("referenceFormat", text="Ignored"),
        FIND_TAGS,
        Parameter("fetchMaxId", "boolean", "Tell the highest id too"),
    ),
    errors=failures(40403, 50001),
    **TYPES,
)
async def schema_by_id(call: Call) -> bytes:
    api = call.api
    version = lookups.by_id(api.state, call.schema_id(), call.named_subject())
    form = call.text("format") or ""
    wants_max, wanted_tags = call.flag("fetchMaxId"), call.texts("findTags")
    is_plain = not wants_max and not wanted_tags
    found = api.bodies.get(version, form) if is_plain else None
    if found is None:
        text = await formatted(api, version.content, version.subject.context.name, form)
        id_max = version.subject.context.id_max if wants_max else None
        body = response_bodies.by_id(version, text, id_max, api.settings.is_classic)
        found = as_json({**body, **response_bodies.tags(version.content, wanted_tags)})
        if is_plain:
            api.bodies.put(version, form, found)
    return found


@operations.declare(
    "GET",
    "/schemas/ids/{id}/schema",
    "The bare text of a schema",
    responses={200: "any"},
    query=(SUBJECT, FORMAT),
    errors=failures(40403, 50001),
    **TYPES,
)
async def text_by_id(call: Call) -> Response:
    version = lookups.by_id(call.api.state, call.schema_id(), call.named_subject())
    text = await formatted(call.api, version.content, version.subject.context.name, call.text("format") or "")
    return Response(version.content.text if text is None else text, media_type=call.media_type)


@operations.declare(
    "GET",
    "/schemas/ids/{id}/subjects",
    "Subjects that have a schema",
    responses={200: ["string"]},
    query=(SUBJECT, DELETED, *PAGE),
    errors=failures(40403, 50001),
    **TYPES,
)
async def subjects_of_id(call: Call) -> list[str]:
    return await call.api.work(names_of_users, call)


def names_of_users(call: Call) -> list[str]:
    names = dict.fromkeys(each.subject.name for each in users_of_id(call))
    return call.page().of(iter(names), call.api.settings.subject_limit)


@operations.declare(
    "GET",
    "/schemas/ids/{id}/versions",
    "Subjects and versions that have a schema",
    responses={200: ["SubjectVersion"]},
    query=(SUBJECT, DELETED, *PAGE),
    errors=failures(40403, 50001),
    **TYPES,
)
async def versions_of_id(call: Call) -> list[dict[str, Any]]:
    return await call.api.work(places_of_users, call)


def places_of_users(call: Call) -> list[dict[str, Any]]:
    found = ({"subject": each.subject.name, "version": each.number} for each in users_of_id(call))
    return call.page().of(found, call.api.settings.version_limit)


def users_of_id(call: Call) -> Iterator[Version]:
    return lookups.users_of_id(
        call.api.state, call.schema_id(), call.named_subject(), include_deleted=call.flag("deleted")
    )


@operations.declare(
    "GET",
    "/schemas/guids/{guid}",
    "A schema by its guid",
    responses={200: "SchemaString"},
    query=(FORMAT,),
    errors=failures(40403, 50001),
    **TYPES,
)
async def schema_by_guid(call: Call) -> dict[str, Any]:
    version = lookups.by_guid(call.api.state, call.request.path_params["guid"])[0]
    text = await formatted(call.api, version.content, version.subject.context.name, call.text("format") or "")
    return response_bodies.by_id(version, text, None, call.api.settings.is_classic)


@operations.declare(
    "GET",
    "/schemas/guids/{guid}/ids",
    "The ids of a schema in all contexts",
    responses={200: ["ContextId"]},
    errors=failures(40403, 50001),
    **TYPES,
)
async def ids_of_guid(call: Call) -> list[dict[str, Any]]:
    found = lookups.by_guid(call.api.state, call.request.path_params["guid"])
    return [{"context": each.subject.context.name, "id": each.schema_id} for each in found]


@operations.declare(
    "GET",
    "/schemas/types",
    "The types of schemas that can be registered",
    responses={200: ["string"]},
    **TYPES,
)
async def types(call: Call) -> list[str]:
    return [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO]


@operations.declare(
    "GET",
    "/schemas",
    "Schemas of many subjects",
    responses={200: ["ExtendedSchema"]},
    query=(
        Parameter("subjectPrefix", text="The beginning of the subjects' names; :*: for all contexts"),
        Parameter("aliases", "boolean", "Tell which subjects have the subject as their alias"),
        DELETED,
        Parameter("latestOnly", "boolean", "The latest version of each subject"),
        Parameter("ruleType", text="Only schemas with a rule of this type"),
        Parameter("resourceType", text="Only subjects that are associated with such a resource"),
        Parameter("associationType", ["string"], "Only subjects with an association of these types"),
        Parameter("lifecycle", text="Only subjects with an association of this lifecycle"),
        *PAGE,
    ),
    errors=failures(50001),
    **TYPES,
)
async def schemas(call: Call) -> bytes:
    return await call.api.work(list_of_schemas, call)


def list_of_schemas(call: Call) -> bytes:
    found = call.page().of(wanted_versions(call), call.api.settings.schema_limit)
    return as_json([extended(call, version) for version in found])


def wanted_versions(call: Call) -> Iterator[Version]:
    state, deleted, rule_type = call.api.state, call.flag("deleted"), call.text("ruleType")
    latest_only = call.flag("latestOnly")
    for subject in lookups.subjects(state, call.prefix(""), deleted=deleted):
        if not has_wanted_association(call, subject.name):
            continue
        versions = subject.sorted(deleted=deleted)
        for version in versions[-1:] if latest_only else versions:
            rules = version.content.rules
            if not rule_type or (rules is not None and any(each.type == rule_type for each in rules.rules())):
                yield version


def has_wanted_association(call: Call, subject: str) -> bool:
    resource_type, kinds, lifecycle = (
        call.text("resourceType"),
        call.texts("associationType"),
        call.text("lifecycle"),
    )
    if not (resource_type or kinds or lifecycle):
        return True
    return any(
        (not resource_type or each.key.resource_type == resource_type)
        and (not kinds or each.key.association_type in kinds)
        and (not lifecycle or each.lifecycle == lifecycle)
        for each in call.api.state.associations.of_subject(subject)
    )


def extended(call: Call, version: Version) -> dict[str, Any]:
    state, is_classic = call.api.state, call.api.settings.is_classic
    found = response_bodies.whole(version, None, is_classic)
    if call.flag("aliases"):
        aliases = lookups.aliases_of(state, version.subject.name)
        found = {**found, "aliases": aliases} if aliases else found
    associations = state.associations.of_subject(version.subject.name)
    if associations and not is_classic:
        found["associations"] = [each.to_json() for each in associations]
    return found

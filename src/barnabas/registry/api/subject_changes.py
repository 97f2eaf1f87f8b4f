"""Endpoints under /subjects that write: registering, tagging, deleting."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response

from barnabas.registry.api import response_bodies
from barnabas.registry.api.bodies import checked, schema_request, tag_changes, whole
from barnabas.registry.api.call import Call
from barnabas.registry.api.components import FORMAT, NO_BODY, NORMALIZE, TYPES, WRITE_FAILURES, failures
from barnabas.registry.api.texts import formatted
from barnabas.registry.state.commands import (
    DeleteSubject,
    DeleteVersion,
    Registered,
    RegisterSchema,
    TagVersion,
)
from barnabas.registry.state.contracts import metadata_of, rule_set_of, strings
from barnabas.registry.state.names import subject_name
from barnabas.registry.state.registering import existing
from barnabas.schemas.model import SchemaType
from barnabas.services.openapi import Operations, Parameter

operations = Operations("Subjects")
BASE64 = re.compile(r"[A-Za-z0-9+/=]+")
PERMANENT = Parameter("permanent", "boolean", "Delete what is soft-deleted for ever")


async def registered(call: Call, reply: Registered, sent: str = "") -> dict[str, Any]:
    """The body of the response. Clients that send Protobuf as a descriptor take the schema of the response
    for a descriptor too, so it is left out then, and they keep the one that they sent."""
    context = subject_name(reply.subject).context
    form = call.text("format") or ""
    text = await formatted(call.api, reply.content, context, form)
    found = response_bodies.registered(reply, text, call.api.settings.is_classic)
    if not form and reply.content.schema_type == SchemaType.PROTOBUF and BASE64.fullmatch(sent):
        found.pop("schema", None)
    return found


@operations.declare(
    "POST",
    "/subjects/{subject}/versions",
    "Register a schema under a subject",
    responses={200: "RegisterSchemaResponse"},
    query=(NORMALIZE, FORMAT, Parameter("force", "boolean", "Do not check compatibility")),
    request="RegisterSchemaRequest",
    errors=(*NO_BODY, *failures(40901, 42201, 42205, 42208, 42209, 42210), *WRITE_FAILURES),
    **TYPES,
)
async def register_schema(call: Call) -> dict[str, Any] | Response:
    api = call.api
    request = schema_request(await call.body(), api.settings.schema_bytes_max)
    command = RegisterSchema(call.subject(), request, call.flag("normalize"), call.flag("force"))
    found = await api.work(existing, command, api.state, api.reader)
    if found is not None:
        return await registered(call, Registered.of(found), request.text)
    reply = await api.submit(call.request, command)
    return reply if isinstance(reply, Response) else await registered(call, reply, request.text)


@operations.declare(
    "POST",
    "/subjects/{subject}/versions/{version}/tags",
    "Make a new version with other tags, metadata or rules",
    responses={200: "RegisterSchemaResponse"},
    request="TagSchemaRequest",
    errors=(
        *NO_BODY,
        *failures(40401, 40402, 40901, 42201, 42202, 42205, 42208, 42210),
        *WRITE_FAILURES,
    ),
    **TYPES,
)
async def tag_version(call: Call) -> dict[str, Any] | Response:
    number = call.version()
    body = await call.body()
    command = checked(
        lambda: TagVersion(
            subject=call.subject(),
            version=number,
            new_version=whole(body, "newVersion", 0),
            tags_to_add=tag_changes(body, "tagsToAdd"),
            tags_to_remove=tag_changes(body, "tagsToRemove"),
            metadata=metadata_of(body.get("metadata")),
            rules=rule_set_of(body.get("ruleSet")),
            rules_to_merge=rule_set_of(body.get("rulesToMerge")),
            rules_to_remove=strings(body.get("rulesToRemove") or [], "rulesToRemove"),
        )
    )
    reply = await call.api.submit(call.request, command)
    return reply if isinstance(reply, Response) else await registered(call, reply)


@operations.declare(
    "DELETE",
    "/subjects/{subject}",
    "Delete all versions of a subject",
    responses={200: ["integer"]},
    query=(PERMANENT,),
    errors=(*failures(40401, 40404, 40405, 42205, 42206), *WRITE_FAILURES),
    **TYPES,
)
async def delete_subject(call: Call) -> Any:
    return await call.api.submit(call.request, DeleteSubject(call.subject(), call.flag("permanent")))


@operations.declare(
    "DELETE",
    "/subjects/{subject}/versions/{version}",
    "Delete a version of a subject",
    responses={200: "integer"},
    query=(PERMANENT,),
    errors=(*failures(40401, 40402, 40406, 40407, 42202, 42205, 42206), *WRITE_FAILURES),
    **TYPES,
)
async def delete_version(call: Call) -> Any:
    command = DeleteVersion(call.subject(), call.version(), call.flag("permanent"))
    return await call.api.submit(call.request, command)

"""Endpoints under /associations: subjects that belong to resources, such as topics."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from barnabas.registry.api import response_bodies
from barnabas.registry.api.bodies import association_changes, checked, text
from barnabas.registry.api.call import Call, as_json
from barnabas.registry.api.components import (
    DRY_RUN,
    LIFECYCLE,
    NO_BODY,
    PAGE,
    TYPES,
    WRITE_FAILURES,
    failures,
)
from barnabas.registry.state import refusals
from barnabas.registry.state.associating import Associated
from barnabas.registry.state.association_records import STRONG, WEAK, Association
from barnabas.registry.state.commands import Associate, Dissociate
from barnabas.registry.state.contracts import shaped
from barnabas.registry.state.names import DEFAULT_CONTEXT, context_name, qualified
from barnabas.services.errors import ApiError, error_body
from barnabas.services.openapi import Operations, Parameter

operations = Operations("Associations")
CONTEXT = Parameter("context", text="The context of subjects that name none")
FILTERS = (
    Parameter("resourceType"),
    Parameter("associationType", ["string"]),
    Parameter("lifecycle", LIFECYCLE),
    *PAGE,
)
CHANGE_FAILURES = (
    *NO_BODY,
    *failures(40901, 40902, 40903, 40904, 40905, 40907, 40908, 42201, 42205, 42209, 42210, 42212),
    *WRITE_FAILURES,
)
REQUESTS_MAX = 100  # of one batch


@operations.declare(
    "POST",
    "/associations",
    "Associate a resource with subjects",
    responses={200: "AssociationResponse"},
    query=(CONTEXT, DRY_RUN),
    request="AssociationRequest",
    errors=CHANGE_FAILURES,
    **TYPES,
)
async def create_associations(call: Call) -> Any:
    return await associated(call, None, may_exist=False)


@operations.declare(
    "PUT",
    "/associations/resources/{resourceId}",
    "Associate a resource with subjects, or change its associations",
    responses={200: "AssociationResponse"},
    query=(CONTEXT, DRY_RUN),
    request="AssociationRequest",
    errors=CHANGE_FAILURES,
    **TYPES,
)
async def change_associations(call: Call) -> Any:
    return await associated(call, call.request.path_params["resourceId"], may_exist=True)


async def associated(call: Call, resource_id: str | None, *, may_exist: bool) -> Any:
    body = await call.body()
    if resource_id is not None:
        body = {**body, "resourceId": resource_id}
    command = associate_of(call, body, may_exist=may_exist)
    reply = await call.api.submit(call.request, command)
    return reply if isinstance(reply, Response) else resource_json(command, reply, call)


def associate_of(call: Call, body: dict[str, Any], *, may_exist: bool) -> Associate:
    name, namespace = checked(lambda: (text(body, "resourceName"), text(body, "resourceNamespace")))
    resource_id, kind = checked(lambda: (text(body, "resourceId"), text(body, "resourceType")))
    known = call.api.state.associations.of_resource(resource_id or "")
    if may_exist and known:  # the resource's names are known, so a change may leave them out
        name = name or known[0].key.resource_name
        namespace = namespace or known[0].key.resource_namespace
    return Associate(
        name,
        namespace,
        resource_id,
        kind,
        association_changes(body, call.api.settings.schema_bytes_max),
        may_exist=may_exist,
        dry_run=call.flag("dryRun"),
        context=context_name(call.text("context") or DEFAULT_CONTEXT),
    )


def resource_json(command: Associate, made: list[Associated], call: Call) -> dict[str, Any]:
    key = made[0].association.key
    return {
        "resourceName": key.resource_name,
        "resourceNamespace": key.resource_namespace,
        "resourceId": command.resource_id,
        "resourceType": key.resource_type,
        "associations": [association_json(each, call) for each in made],
    }


def association_json(made: Associated, call: Call) -> dict[str, Any]:
    association = made.association
    found: dict[str, Any] = {
        "subject": association.key.subject,
        "associationType": association.key.association_type,
        "lifecycle": association.lifecycle,
        "frozen": association.frozen,
    }
    if made.schema is not None:
        schema = response_bodies.registered(made.schema, None, call.api.settings.is_classic)
        found["schema"] = {"subject": made.schema.subject, **schema}
    return found


@operations.declare(
    "GET",
    "/associations/resources/{resourceId}",
    "Associations of a resource",
    responses={200: ["Association"]},
    query=FILTERS,
    errors=failures(42212, 50001),
    **TYPES,
)
async def associations_of_resource(call: Call) -> list[dict[str, Any]]:
    return filtered(call, call.api.state.associations.of_resource(call.request.path_params["resourceId"]))


@operations.declare(
    "GET",
    "/associations/resources/{resourceNamespace}/{resourceName}",
    "Associations of a resource by its name",
    responses={200: ["Association"]},
    query=FILTERS,
    errors=failures(42212, 50001),
    **TYPES,
)
async def associations_of_name(call: Call) -> list[dict[str, Any]]:
    given = call.request.path_params
    found = call.api.state.associations.of_resource_name(given["resourceNamespace"], given["resourceName"])
    return filtered(call, found)


@operations.declare(
    "GET",
    "/associations/subjects/{subject}",
    "Associations of a subject",
    responses={200: ["Association"]},
    query=FILTERS,
    errors=failures(42212, 50001),
    **TYPES,
)
async def associations_of_subject(call: Call) -> list[dict[str, Any]]:
    name = qualified(call.request.path_params["subject"])
    return filtered(call, call.api.state.associations.of_subject(name))


def filtered(call: Call, found: list[Association]) -> list[dict[str, Any]]:
    resource_type, kinds, lifecycle = (
        call.text("resourceType"),
        call.texts("associationType"),
        call.text("lifecycle"),
    )
    if lifecycle not in (None, STRONG, WEAK):
        raise refusals.invalid_association(f"lifecycle must be {STRONG} or {WEAK}")
    wanted = (
        each.to_json()
        for each in found
        if (not resource_type or each.key.resource_type == resource_type)
        and (not kinds or each.key.association_type in kinds)
        and (lifecycle is None or each.lifecycle == lifecycle)
    )
    return call.page().of(wanted, call.api.settings.subject_limit)


@operations.declare(
    "DELETE",
    "/associations/resources/{resourceId}",
    "Delete associations of a resource",
    responses={200: ["Association"]},
    query=(
        Parameter("resourceType"),
        Parameter("associationType", ["string"]),
        Parameter("cascadeLifecycle", "boolean", "Delete subjects of strong associations too"),
        DRY_RUN,
    ),
    errors=(*failures(40410, 40908, 42205, 42206, 42212), *WRITE_FAILURES),
    **TYPES,
)
async def delete_associations(call: Call) -> Any:
    command = Dissociate(
        call.request.path_params["resourceId"],
        call.text("resourceType"),
        tuple(call.texts("associationType")),
        call.flag("cascadeLifecycle"),
        call.flag("dryRun"),
    )
    reply = await call.api.submit(call.request, command)
    return reply if isinstance(reply, Response) else [each.to_json() for each in reply]


@operations.declare(
    "POST",
    "/associations:batch",
    "Change associations of several resources; each has its own result",
    responses={207: "AssociationBatchResponse"},
    query=(CONTEXT, DRY_RUN),
    request="AssociationBatchRequest",
    errors=(*NO_BODY, *failures(42212), *WRITE_FAILURES),
    **TYPES,
)
async def change_in_batch(call: Call) -> Response:
    response = await call.api.forwarded(call.request)
    if response is not None:
        return response
    body = await call.body()
    requests = checked(lambda: shaped(body.get("requests") or [], list, "requests"))
    if not 1 <= len(requests) <= REQUESTS_MAX:
        raise refusals.invalid_association(
            f"requests has {len(requests)} entries; allowed: 1 to {REQUESTS_MAX}"
        )
    results = [await result_of(call, each) for each in requests]
    return Response(as_json({"results": results}), 207, media_type=call.media_type)


async def result_of(call: Call, request: Any) -> dict[str, Any]:
    try:
        return {"result": await changed(call, checked(lambda: shaped(request, dict, "an entry of requests")))}
    except ApiError as error:
        return {"error": error_body(error)}


async def changed(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """One request of a batch: what is to be deleted goes first, the rest is one change."""
    entries = checked(lambda: shaped(request.get("associations") or [], list, "associations"))
    kinds = [str(each.get("opType")) if isinstance(each, dict) else "" for each in entries]
    if {*kinds} - {"CREATE", "UPSERT", "DELETE"} or not kinds:
        raise refusals.invalid_association("each association needs opType CREATE, UPSERT or DELETE")
    resource_id = checked(lambda: text(request, "resourceId")) or ""
    gone = [each for each, kind in zip(entries, kinds, strict=True) if kind == "DELETE"]
    if gone:
        types = checked(lambda: tuple(text(each, "associationType") or "value" for each in gone))
        await call.api.change(Dissociate(resource_id, None, types, dry_run=call.flag("dryRun")))
    rest = [each for each, kind in zip(entries, kinds, strict=True) if kind != "DELETE"]
    if not rest:
        return {"resourceId": resource_id}
    command = associate_of(call, {**request, "associations": rest}, may_exist="UPSERT" in kinds)
    return resource_json(command, await call.api.change(command), call)
